"""Pictures of a browser: PNG of 8 bits a channel, read with Python's own library."""

import struct
import zlib


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += size + 12


def predictor(kind, left, above, corner):
    if kind < 4:
        return (0, left, above, (left + above) // 2)[kind]
    estimate = left + above - corner
    return min((left, above, corner), key=lambda value: abs(estimate - value))


def colours(data):
    """How often each colour occurs."""
    parts = list(chunks(data))
    width, height, depth, kind = struct.unpack(">IIBB", parts[0][1][:10])
    assert depth == 8 and kind in (2, 6), f"depth {depth}, colour type {kind}"
    channels = 3 if kind == 2 else 4
    raw = zlib.decompress(b"".join(part for name, part in parts if name == b"IDAT"))
    size = width * channels
    above, counts = bytearray(size), {}
    for start in range(0, height * (size + 1), size + 1):
        method, row = raw[start], bytearray(raw[start + 1:start + 1 + size])
        if method:
            for i in range(size):
                left, corner = (row[i - channels], above[i - channels]) if i >= channels else (0, 0)
                row[i] = (row[i] + predictor(method, left, above[i], corner)) & 255
        for i in range(0, size, channels):
            colour = bytes(row[i:i + 3])
            counts[colour] = counts.get(colour, 0) + 1
        above = row
    return counts
