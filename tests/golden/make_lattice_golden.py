#!/usr/bin/python3
"""Independent reference values for the scheme `encrypted`, in plain Python integers.

Written from PRIVACY.md section 9 and from the comments of common/lattice/*.h, not from the C++
code, so that the two can disagree. `./make_lattice_golden.py` rewrites lattice_golden.json beside
itself in less than a minute; `--measure` prints the deviations of errors beside their formulas instead.

Polynomials are lists of N integers. Products of polynomials use no transform: both factors become
one large integer each (Kronecker substitution), whose product Python computes.

Inputs are streams, so that the file stays small: stream(name, count, bound) is SHAKE128("golden " +
name) in words of 8 bytes, little-endian, each modulo 2 bound + 1, minus bound.
"""
import hashlib
import json
import math
import os
import struct
import sys
from fractions import Fraction

N, LOG_N = 2048, 11
Q = 2**41 - 2**12 + 1
DELTAS = (32, 64, 128, 256)
DIGITS, DIGIT_BITS, DROPPED_BITS = 2, 14, 13
BITS_A, BITS_B = 20, 16
ITEM_SCALE = 2**14
HEADROOM = Fraction(101, 100)
MAX_DIMENSIONS = 16384
USE_KEYS, USE_QUERY = 1, 2


# Streams and digests.

def shake(text, size):
    return hashlib.shake_128(text).digest(size)


def stream(name, count, bound):
    words = struct.unpack("<%dQ" % count, shake(b"golden " + name.encode(), 8 * count))
    return [w % (2 * bound + 1) - bound for w in words]


def binomial(name, count):
    """Errors: the number of ones in bits 0 to 20 of each word minus that in bits 21 to 41."""
    words = struct.unpack("<%dQ" % count, shake(b"golden " + name.encode(), 8 * count))
    ones = lambda bits: bin(bits % 2**21).count("1")
    return [ones(w) - ones(w >> 21) for w in words]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# The ring.

def is_prime(n):
    """Miller-Rabin with the first twelve primes as bases: a proof for n < 3.3e24."""
    d, s = n - 1, 0
    while d % 2 == 0:
        d, s = d // 2, s + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        x = pow(base, d, n)
        if x not in (1, n - 1) and all((x := x * x % n) != n - 1 for _ in range(s - 1)):
            return False
    return True


def centre(value):
    value %= Q
    return value - Q if value > (Q - 1) // 2 else value


def schoolbook(x, y):
    out = [0] * N
    for i, u in enumerate(x):
        for j, v in enumerate(y):
            if i + j < N:
                out[i + j] += u * v
            else:
                out[i + j - N] -= u * v
    return [centre(c) for c in out]


SLOT = 9  # bytes of a coefficient in the large integer: sums of products stay below 2^71
OFFSET = sum(1 << (8 * SLOT * i + 8 * SLOT - 1) for i in range(N))
FOLD = 8 * SLOT * N


def pack_integer(poly):
    """sum_i poly_i 2^(72 i), of any signs."""
    positive = b"".join((c if c > 0 else 0).to_bytes(SLOT, "little") for c in poly)
    negative = b"".join((-c if c < 0 else 0).to_bytes(SLOT, "little") for c in poly)
    return int.from_bytes(positive, "little") - int.from_bytes(negative, "little")


def unpack_integer(value):
    """The polynomial of a product of packed integers modulo X^N + 1, centred."""
    value += OFFSET | OFFSET << FOLD  # no coefficient is negative, so none borrows from the next
    folded = (value & ((1 << FOLD) - 1)) - (value >> FOLD) + OFFSET
    data = folded.to_bytes(SLOT * N + 1, "little")
    half = 1 << (8 * SLOT - 1)
    return [centre(int.from_bytes(data[SLOT * i:SLOT * i + SLOT], "little") - half) for i in range(N)]


def multiply(small, poly):
    """A product modulo q. Coefficients of `small` are below 2^19 in absolute value."""
    return unpack_integer(pack_integer(small) * pack_integer(poly))


def add(x, y, sign=1):
    return [centre(u + sign * v) for u, v in zip(x, y)]


def shift(poly, k):
    """X^k poly, 0 <= k < N."""
    return [-c for c in poly[N - k:]] + poly[:N - k]


def automorphism(poly, g):
    """poly(X^g), g odd."""
    out = [0] * N
    for i, c in enumerate(poly):
        e = i * g % (2 * N)
        out[e % N] = -c if e >= N else c
    return out


PSI = pow(3, (Q - 1) // (2 * N), Q)
POWERS = [pow(PSI, i, Q) for i in range(2 * N)]


def reverse_bits(i):
    return int(format(i, "0%db" % LOG_N)[::-1], 2)


def evaluate(poly, point):
    value = 0
    for c in reversed(poly):
        value = (value * point + c) % Q
    return centre(value)


def transform(poly):
    """The values at psi^(2 r(i) + 1): halves of P(X) modulo X^n - z^2 are modulo X^(n/2) - z and + z."""
    parts = [(list(poly), N)]  # (coefficients, exponent e of psi: modulo X^n - psi^e), X^N = -1 = psi^N
    while len(parts) < N:
        halves = []
        for coefficients, e in parts:
            n = len(coefficients) // 2
            root = POWERS[e // 2]
            low, high = coefficients[:n], [c * root % Q for c in coefficients[n:]]
            halves.append(([u + v for u, v in zip(low, high)], e // 2))
            halves.append(([u - v for u, v in zip(low, high)], e // 2 + N))
        parts = halves
    return [centre(coefficients[0]) for coefficients, _ in parts]


def inverse_transform(values):
    parts, exponents = [[v] for v in values], [2 * reverse_bits(i) + 1 for i in range(N)]
    while len(parts) > 1:  # undoes the halves of `transform`, times 2
        joined = []
        for i in range(0, len(parts), 2):
            root = POWERS[2 * N - exponents[i]]
            low = [u + v for u, v in zip(parts[i], parts[i + 1])]
            joined.append(low + [(u - v) * root % Q for u, v in zip(parts[i], parts[i + 1])])
        parts, exponents = joined, [2 * e % (2 * N) for e in exponents[::2]]
    share = pow(N, -1, Q)
    return [centre(c * share) for c in parts[0]]


# Byte forms (wire.h).

def pack_bits(values, bits):
    whole = "".join(format(v, "0%db" % bits) for v in reversed(values))
    return int(whole, 2).to_bytes(len(values) * bits // 8, "little")


def polynomial_bytes(poly):
    return pack_bits([c % Q for c in poly], 41)


def answer_bytes(a, b):
    return pack_bits(a, BITS_A) + pack_bits(b, BITS_B)


def expand_seed(seed, use, index):
    """The transform of the uniform polynomial, and the number of words that were skipped."""
    text = b"privatemail encrypted 1" + bytes([use]) + seed + struct.pack("<I", index)
    values, skipped = [], 0
    data = shake(text, 6 * (N + 16))
    for i in range(N + 16):
        value = int.from_bytes(data[6 * i:6 * i + 6], "little") % 2**41
        if value >= Q:
            skipped += 1
        elif len(values) < N:
            values.append(centre(value))
    assert len(values) == N
    return values, skipped


def round_to_bits(value, bits):
    """floor(value 2^bits / q + 1/2) modulo 2^bits. There are no ties: q is odd."""
    return (2 * value * 2**bits + Q) // (2 * Q) % 2**bits


def digits(c):
    """(low, high) with c = 2^13 low + 2^27 high + rest, -2^12 <= rest < 2^12, of a centred c."""
    d = (c + 2**12) // 2**13
    high = (d + 2**13) // 2**14
    return d - 2**14 * high, high


# The scheme.

def levels(delta):
    return range(LOG_N + 1 - (delta.bit_length() - 1), LOG_N + 1)


def encrypt(a, secret, error, message):
    """b = a s + e + m."""
    return [centre(p + e + m) for p, e, m in zip(multiply(secret, a), error, message)]


def make_keys(secret, errors, seed, delta):
    """{(level, digit): (a, b)}; errors: a polynomial for each in this order."""
    keys, index = {}, 0
    for level in levels(delta):
        turned = automorphism(secret, 2**level + 1)
        for digit in range(DIGITS):
            a = inverse_transform(expand_seed(seed, USE_KEYS, index)[0])
            weight = 2 ** (DROPPED_BITS + DIGIT_BITS * digit)
            keys[level, digit] = a, encrypt(a, secret, errors[index], [weight * c for c in turned])
            index += 1
    return keys


def keys_bytes(seed, keys):
    return seed + b"".join(polynomial_bytes(b) for _, b in keys.values())


def query_scale(delta):
    return Fraction(Q) / (2 * ITEM_SCALE * delta * HEADROOM)


def query_message(part):
    """sum_i part_i X^-i, with X^-i = -X^(N - i) for i > 0."""
    out = [0] * N
    for i, t in enumerate(part):
        if i == 0:
            out[0] = t
        else:
            out[N - i] = -t
    return out


def make_query(secret, errors, seed, target, delta):
    """[(a, b)] for each chunk. target: the scaled coordinates, integers."""
    chunks = []
    for c in range(-(-len(target) // delta)):
        a = inverse_transform(expand_seed(seed, USE_QUERY, c)[0])
        message = query_message(target[c * delta:(c + 1) * delta])
        chunks.append((a, encrypt(a, secret, errors[c], message)))
    return chunks


def evaluate_block(rows, dimensions, delta, keys, query):
    """The ciphertext (a, b) of a block. rows: at most N lists of integers; None stands for zeros."""
    packed_query = [(pack_integer(a), pack_integer(b)) for a, b in query]
    packed_keys = {k: (pack_integer(a), pack_integer(b)) for k, (a, b) in keys.items()}
    nodes = []
    for r in range(delta):
        if r >= len(rows):
            nodes.append(None)
            continue
        sums = [0, 0]
        for c, parts in enumerate(packed_query):
            leaf = [0] * N
            for j, row in enumerate(rows[r::delta]):
                piece = row[c * delta:min((c + 1) * delta, dimensions)]
                leaf[j * delta:j * delta + len(piece)] = piece
            packed = pack_integer(leaf)
            for i in range(2):
                sums[i] += packed * parts[i]
        nodes.append([unpack_integer(s) for s in sums])
    zero = [[0] * N, [0] * N]
    for level in levels(delta):
        half, k, g = len(nodes) // 2, N // 2**level, 2**level + 1
        assert half == k
        merged = []
        for even, odd in zip(nodes[:half], nodes[half:]):
            if even is None and odd is None:
                merged.append(None)  # digits of 0 are 0: the sum of zeros is zero
                continue
            even, odd = even or zero, odd or zero
            odd = [shift(p, k) for p in odd]
            turned = [automorphism(add(e, o, -1), g) for e, o in zip(even, odd)]
            pairs = [digits(c) for c in turned[0]]
            switched = [0, 0]
            for digit in range(DIGITS):
                packed = pack_integer([p[digit] for p in pairs])
                for i in range(2):
                    switched[i] += packed * packed_keys[level, digit][i]
            switched = [unpack_integer(s) for s in switched]
            a = add(add(even[0], odd[0]), switched[0], -1)
            b = add(add(add(even[1], odd[1]), turned[1]), switched[1], -1)
            merged.append([a, b])
        nodes = merged
    return nodes[0] or zero


def round_answer(a, b):
    return [round_to_bits(c, BITS_A) for c in a], [round_to_bits(c, BITS_B) for c in b]


def decrypt(a, b, secret):
    """v = b 2^4 - a s modulo 2^20, centred. score = v / 2^19 h."""
    product = multiply(secret, a)  # |a s| < 2^31, so the product modulo q is the product
    half = 2 ** (BITS_A - 1)
    return [(y * 2 ** (BITS_A - BITS_B) - p + half) % 2**BITS_A - half for y, p in zip(b, product)]


# Errors (PRIVACY.md section 9), as shares of the score of two equal unit rows.

VARIANCE_E, VARIANCE_S = 21 / 2, 2 / 3


def deviations(delta, proven=False):
    """Standard deviations of the parts of an error, for uniform digits and remainders; proven: their largest
    values for any, where the secret's two parts, which then may agree, are `secret`."""
    log_delta, h = delta.bit_length() - 1, float(HEADROOM)
    unit = float(query_scale(delta)) * ITEM_SCALE
    tree = math.sqrt((1 - 4.0**-log_delta) / 3)
    out = dict(fresh=math.sqrt(VARIANCE_E * N / delta) * ITEM_SCALE / unit)
    if proven:
        out["fresh"] *= 1 + math.sqrt(MAX_DIMENSIONS) * 2.0**-15  # rows that rounding has lengthened
        out["switching"] = tree * math.sqrt(DIGITS * N * 2**26 * VARIANCE_E) / unit
        out["secret"] = math.sqrt(N * VARIANCE_S) * ((1 - 2.0**-log_delta) * 2**12 / unit + h * 2.0**-BITS_A)
    else:
        out["switching"] = tree * math.sqrt(DIGITS * N * (2**28 - 1) / 12 * VARIANCE_E) / unit
        out["dropped"] = tree * math.sqrt(N * (2**26 - 1) / 12 * VARIANCE_S) / unit
        out["answer a"] = 2 * h * 2.0**-BITS_A * math.sqrt(N * VARIANCE_S / 12)
        out["answer b"] = 2 * h * 2.0**-BITS_B / math.sqrt(12)
    out["all"] = math.sqrt(sum(v * v for v in out.values()))
    return out


def item_rounding(dimensions, delta):
    """The largest error by rounding rows and the scaled target to integers."""
    root, scale = math.sqrt(dimensions), int(query_scale(delta))
    return root * 2.0**-15 + root / (2 * scale) * (1 + root * 2.0**-15)


def proven_bound(delta, log_failures):
    """The error beyond item_rounding that a score exceeds with probability below 2^log_failures."""
    return math.sqrt(2 * math.log(2) * (1 - log_failures)) * deviations(delta, True)["all"] + float(HEADROOM) * 2.0**-BITS_B


def largest_dimensions(delta, log_failures):
    """The largest d whose scores do not wrap but with this probability."""
    room = float(HEADROOM) - 1 - proven_bound(delta, log_failures)
    few, many = 1, 2**18
    while many - few > 1:
        d = (few + many) // 2
        few, many = (d, many) if item_rounding(d, delta) < room else (few, d)
    return few


def measure():
    root_mean = lambda v: math.sqrt(sum(x * x for x in v) / len(v))
    for delta in DELTAS:
        scores = {}
        for part in ("fresh", "switching", "dropped", "all"):
            name = "measure %d" % delta
            key_seed, secret, keys = session(name, delta, errors=part in ("switching", "all"))
            query = query_of(name, secret, delta, delta, errors=part in ("fresh", "all"))
            flat = stream("rows " + name, N * delta, 3 * ITEM_SCALE // 2 // math.isqrt(delta))
            rows = []
            for i in range(N):  # of norm 2^14 but for the rounding
                row = flat[i * delta:(i + 1) * delta]
                norm = math.isqrt(sum(x * x for x in row))
                rows.append([(2 * x * ITEM_SCALE + norm) // (2 * norm) for x in row])
            a, b = evaluate_block(rows, delta, delta, keys, query[3])
            exact = [sum(x * t for x, t in zip(row, query[2])) for row in rows]
            unit = float(query_scale(delta)) * ITEM_SCALE
            phase = [centre(y - p) for y, p in zip(b, multiply(secret, a))]
            scores[part] = root_mean([(p / delta - x) / unit for p, x in zip(phase, exact)])
            if part == "all":
                v = decrypt(*round_answer(a, b), secret)
                scores["with the answer's rounding"] = root_mean([c / 2**19 * float(HEADROOM) - x / unit for c, x in zip(v, exact)])
        print("delta %d" % delta)
        print("  measured", {k: "%.3g" % v for k, v in scores.items()})
        print("  formula ", {k: "%.3g" % v for k, v in deviations(delta).items()})
        print("  proven  ", {k: "%.3g" % v for k, v in deviations(delta, True).items()})
        for log_failures in (-40, -60):
            print("  beyond rounding to integers, 2^%d: %.3g; largest d %d" % (log_failures, proven_bound(delta, log_failures),
                                                                        largest_dimensions(delta, log_failures)))
        print("  rounding to integers at d 128, 1280, 16384:", ["%.3g" % item_rounding(d, delta) for d in (128, 1280, 16384)])


# The golden values.

def sparse(values, indices=(0, 1, 2, 31, 1023, 1024, 2046, 2047)):
    return {str(i): values[i] for i in indices}


def ring_values():
    assert is_prime(Q) and Q % (2 * N) == 1
    assert not any(is_prime(p) for p in range(Q + 2 * N, 2**41, 2 * N))
    assert pow(PSI, N, Q) == Q - 1
    return dict(modulus=Q, psi=PSI, equation="ring.h: q is the largest prime below 2^41 that is 1 modulo 2 N")


def polynomials():
    top = (Q - 1) // 2
    return {"transform 0": stream("transform 0", N, top), "X": [0, 1] + [0] * (N - 2), "largest": [top] * N,
            "smallest": [-top] * N, "alternating": [top, -top] * (N // 2)}


def transform_values():
    out = []
    for name, poly in polynomials().items():
        values = transform(poly)
        for i in (0, 1, 2, 5, 1024, 2047):
            assert values[i] == evaluate(poly, pow(PSI, 2 * reverse_bits(i) + 1, Q))
        assert inverse_transform(values) == poly
        out.append(dict(input=name, values=sparse(values), sha256=sha256(polynomial_bytes(values))))
    return out


def product_values():
    top = (Q - 1) // 2
    x, y = stream("product x", N, top), stream("product y", N, top)
    product = schoolbook(x, y)
    pointwise = [centre(u * v) for u, v in zip(transform(x), transform(y))]
    assert inverse_transform(pointwise) == product
    small = stream("product small", N, 2**15)
    assert multiply(small, y) == inverse_transform([centre(u * v) for u, v in zip(transform(small), transform(y))])
    return dict(x="product x", y="product y", values=sparse(product), sha256=sha256(polynomial_bytes(product)))


def seed_values():
    out = []
    # The last polynomial skips a word that is q or more, which 2^-18 of all polynomials do.
    for name, use, index in (("seed 0", USE_KEYS, 0), ("seed 0", USE_QUERY, 0), ("seed 0", USE_QUERY, 1), ("seed 0", USE_KEYS, 15),
                             ("seed 1", USE_QUERY, 258), ("seed 218425", USE_QUERY, 0)):
        values, skipped = expand_seed(shake(b"golden " + name.encode(), 32), use, index)
        out.append(dict(seed=name, use=use, index=index, skipped=skipped, values=sparse(values), sha256=sha256(polynomial_bytes(values))))
    return out


def form_values():
    poly = stream("form", N, (Q - 1) // 2)
    edges = [0, 1, -1, (Q - 1) // 2, -(Q - 1) // 2, 2**32, -2**32, 12345678901] * (N // 8)
    a, b = [v % 2**BITS_A for v in stream("form a", N, 2**40)], [v % 2**BITS_B for v in stream("form b", N, 2**40)]
    return dict(polynomials=[dict(input=n, head=polynomial_bytes(p)[:41].hex(), sha256=sha256(polynomial_bytes(p)))
                             for n, p in (("form", poly), ("edges", edges))],
                answer=dict(a="form a", b="form b", head_a=answer_bytes(a, b)[:20].hex(), head_b=answer_bytes(a, b)[5120:5136].hex(),
                            sha256=sha256(answer_bytes(a, b))))


def rounding_values():
    out, top = [], (Q - 1) // 2
    for bits in (BITS_A, BITS_B):
        values = [0, 1, -1, top, -top, top - 1, 1 - top]
        for k in (0, 1, 2, 12345, 2 ** (bits - 1) - 2, 2 ** (bits - 1) - 1):  # the halves (2 k + 1) q / 2^(bits + 1) and both sides
            below = (2 * k + 1) * Q // 2 ** (bits + 1)
            values += [below, below + 1, -below, -below - 1]
        for sign in (1, -1):  # value 2^(bits + 1) = odd q + sign: the nearest to a tie
            odd = -sign * pow(Q, -1, 2 ** (bits + 1)) % 2 ** (bits + 1)
            value = centre((odd * Q + sign) // 2 ** (bits + 1))
            assert min(abs(value * 2 ** (bits + 1) - m * Q) for m in (odd, odd - 2 ** (bits + 1))) == 1
            values.append(value)
        for value in sorted(v for v in set(values) if abs(v) <= top):
            exact = Fraction(value * 2**bits, Q)
            assert (exact + Fraction(1, 2)).denominator != 1  # no tie
            assert round_to_bits(value, bits) == round(exact) % 2**bits
            out.append([value, bits, round_to_bits(value, bits)])
    return out


def digit_values():
    out, top = [], (Q - 1) // 2
    values = {0, top, -top}
    for d in (0, 1, -1, 2**13 - 1, 2**13, -2**13, -2**13 - 1, 3 * 2**13, -3 * 2**13, 2**27 - 2**13 - 1, 2**27 - 2**13, 2**27 - 1, 2**27, -2**27):
        values |= {2**13 * d - 2**12, 2**13 * d - 2**12 - 1, 2**13 * d, 2**13 * d + 2**12 - 1, 2**13 * d + 2**12}
    values |= set(stream("digits", 4, top))
    for c in sorted(v for v in values if abs(v) <= top):
        low, high = digits(c)
        assert -2**13 <= low < 2**13 and -2**13 <= high <= 2**13 and -2**12 <= c - 2**13 * low - 2**27 * high < 2**12
        out.append([c, low, high])
    return out


def delta_values():
    """scores.h: the smallest delta whose query, seed and chunks, is at most 3/5 of the answer's bytes, or else the largest."""
    out = []
    for rows, dimensions in ((1, 1), (1, 16384), (8000, 128), (4096, 128), (4097, 128), (100000, 128), (1000000, 128), (100000, 768),
                             (1056, 1280), (204 * N, 108 * 32), (205 * N, 108 * 32), (206 * N, 108 * 32)):
        answer = -(-rows // N) * (N * (BITS_A + BITS_B) // 8)
        fits = [d for d in DELTAS if 5 * (32 + -(-dimensions // d) * (N * 41 // 8)) <= 3 * answer]
        out.append([rows, dimensions, fits[0] if fits else DELTAS[-1]])
    return out


def headroom_values():
    """An answer of 10^6 rows wraps with probability below 2^-40 if each score does with 2^-60, for d up to these."""
    return dict(numerator=HEADROOM.numerator, denominator=HEADROOM.denominator,
                largest_dimensions={str(delta): largest_dimensions(delta, -60) for delta in DELTAS})


def session(name, delta, errors=True):
    seed = shake(b"golden seed of keys " + name.encode(), 32)
    secret = stream("secret " + name, N, 1)
    drawn = [binomial("key error %d %s" % (i, name), N) if errors else [0] * N for i in range(DIGITS * len(levels(delta)))]
    return seed, secret, make_keys(secret, drawn, seed, delta)


def query_of(name, secret, dimensions, delta, errors=True):
    seed = shake(b"golden seed of query " + name.encode(), 32)
    bound = int(query_scale(delta) * 3 / 2 / max(2, math.isqrt(dimensions)))
    target = stream("target " + name, dimensions, bound)
    drawn = [binomial("query error %d %s" % (c, name), N) if errors else [0] * N for c in range(-(-dimensions // delta))]
    return seed, bound, target, make_query(secret, drawn, seed, target, delta)


def block_case(name, rows_count, dimensions, delta):
    key_seed, secret, keys = session(name, delta)
    query_seed, target_bound, target, query = query_of(name, secret, dimensions, delta)
    row_bound = 3 * ITEM_SCALE // 2 // max(2, math.isqrt(dimensions))
    flat = stream("rows " + name, rows_count * dimensions, row_bound)
    rows = [flat[i * dimensions:(i + 1) * dimensions] for i in range(rows_count)]
    answer = round_answer(*evaluate_block(rows, dimensions, delta, keys, query))
    decrypted = decrypt(*answer, secret)
    # The independent check of all of it: scores are inner products of integers.
    unit = query_scale(delta) * ITEM_SCALE
    limit = 8 * deviations(delta)["all"]
    errors = []
    for p in range(N):
        exact = sum(x * t for x, t in zip(rows[p], target)) if p < rows_count else 0
        score = Fraction(decrypted[p], 2 ** (BITS_A - 1)) * HEADROOM
        errors.append(float(score - exact / unit))
    assert max(map(abs, errors)) < limit, (name, max(map(abs, errors)), limit)
    query_chunks = b"".join(polynomial_bytes(b) for _, b in query)
    packed = answer_bytes(*answer)
    print("%-10s largest error %.2e of %.2e" % (name, max(map(abs, errors)), limit), file=sys.stderr)
    return dict(name=name, rows=rows_count, dimensions=dimensions, delta=delta, row_bound=row_bound, target_bound=target_bound,
                keys_sha256=sha256(keys_bytes(key_seed, keys)), query_sha256=sha256(query_chunks), answer_sha256=sha256(packed),
                answer_a=sparse(answer[0]), answer_b=sparse(answer[1]), decrypted=sparse(decrypted),
                decrypted_sha256=sha256(struct.pack("<%di" % N, *decrypted)))


def scale_target(vector, delta):
    """round(S v_i / |v|) of an integer vector, exactly: a comparison of squares decides."""
    squares, out = sum(v * v for v in vector), []
    for v in vector:
        exact_square = query_scale(delta) ** 2 * v * v / squares
        t = math.isqrt(exact_square.numerator // exact_square.denominator)
        t += exact_square > (t + Fraction(1, 2)) ** 2
        out.append(t if v >= 0 else -t)
    return out


def client_case(dimensions, delta):
    """Keys and a query from all that a client draws and from the target's vector."""
    name = "client %d" % delta
    key_seed, secret, keys = session(name, delta)
    seed = shake(b"golden seed of query " + name.encode(), 32)
    target = scale_target(stream("vector " + name, dimensions, 1000), delta)
    errors = [binomial("query error %d %s" % (c, name), N) for c in range(-(-dimensions // delta))]
    query = make_query(secret, errors, seed, target, delta)
    a = [v % 2**BITS_A for v in stream("answer a " + name, N, 2**40)]
    b = [v % 2**BITS_B for v in stream("answer b " + name, N, 2**40)]
    decrypted = decrypt(a, b, secret)
    return dict(name=name, dimensions=dimensions, delta=delta, keys_sha256=sha256(keys_bytes(key_seed, keys)), scaled=target[:4],
                query_sha256=sha256(b"".join(polynomial_bytes(b) for _, b in query)), decrypted=sparse(decrypted),
                decrypted_sha256=sha256(struct.pack("<%di" % N, *decrypted)))


CASES = (("full 32", N, 40, 32), ("part 64", 20, 64, 64), ("part 128", 1100, 200, 128), ("part 256", 40, 1270, 256), ("one 32", 1, 1, 32),
         ("long 256", 2, 16384, 256), ("long 32", 1, 16384, 32))


def main():
    if sys.argv[1:] == ["--measure"]:
        return measure()
    ring = ring_values()
    out = dict(about="independent reference values of common/lattice; see make_lattice_golden.py for every formula", ring=ring,
               transform=transform_values(), product=product_values(), seeds=seed_values(), forms=form_values(), rounding=rounding_values(),
               digits=digit_values(), deltas=delta_values(), headroom=headroom_values(), clients=[client_case(100, 32), client_case(300, 256)], blocks=[block_case(*case) for case in CASES])
    text = json.dumps(out, indent=1)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lattice_golden.json"), "w") as f:
        f.write(text + "\n")


if __name__ == "__main__":
    main()
