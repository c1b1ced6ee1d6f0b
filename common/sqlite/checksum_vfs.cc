#include "common/sqlite/checksum_vfs.h"

#include <openssl/sha.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "common/sqlite/wal_frames.h"

namespace privatemail::sqlite {
namespace {

constexpr int kHeaderBytes = 100;         // of a database file
constexpr int kReservedBytesOffset = 20;  // in the header
constexpr int kSmallestPage = 512;

using Checksum = std::array<unsigned char, kPageChecksumBytes>;

// The file object of this VFS. `below`: the file of the default VFS.
struct File {
  sqlite3_file handle;
  sqlite3_file* below;
  bool database;  // not a journal or log
  bool checked;   // a database whose pages end with checksums
  bool log;       // a write-ahead log, whose frames have checksums of SQLite's own
  // Of a log: offset from which frames have checksums that SQLite corrects only at the end of a
  // transaction that changes a page twice. No other connection reads them before.
  sqlite3_int64 unsettled_from;
  sqlite3_int64 frame_header;  // offset of the last one written
};

constexpr sqlite3_int64 kNoOffset = std::numeric_limits<sqlite3_int64>::max();

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Below(sqlite3_file* file) { return Of(file)->below; }
sqlite3_vfs* BelowVfs() { return sqlite3_vfs_find(nullptr); }

// SQLite reads and writes whole pages, except for the header.
bool IsPage(int bytes, sqlite3_int64 offset) {
  return bytes >= kSmallestPage && (bytes & (bytes - 1)) == 0 && offset % bytes == 0;
}

// Calls the default VFS; returns SQLITE_FULL if it failed for lack of space.
template <typename Call>
int CallNeedingSpace(const Call& call) {
  errno = 0;
  const int code = call();
  const int kind = code & 0xff;
  const bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;
  return full && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) ? SQLITE_FULL : code;
}

Checksum ChecksumOf(const unsigned char* page, int bytes, sqlite3_int64 offset) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(page, static_cast<size_t>(bytes - kPageChecksumBytes), digest.data());
  const auto number = static_cast<uint64_t>(offset / bytes);
  Checksum checksum;
  for (size_t i = 0; i < checksum.size(); ++i) {
    checksum[i] = digest[i] ^ static_cast<unsigned char>(number >> (56 - 8 * i));
  }
  return checksum;
}

bool Matches(const unsigned char* page, int bytes, sqlite3_int64 offset) {
  const Checksum checksum = ChecksumOf(page, bytes, offset);
  return std::equal(checksum.begin(), checksum.end(), page + bytes - kPageChecksumBytes);
}

// Sets file->checked. Empty files will have checksums. If the header says no, the checksum of the
// first page decides, since that byte itself may be damaged.
int DetectChecksums(File* file) {
  sqlite3_int64 size = 0;
  const sqlite3_io_methods* methods = file->below->pMethods;
  if (const int code = methods->xFileSize(file->below, &size); code != SQLITE_OK) return code;
  file->checked = size < kHeaderBytes;
  if (file->checked) return SQLITE_OK;
  std::array<unsigned char, kHeaderBytes> header;
  int code = methods->xRead(file->below, header.data(), kHeaderBytes, 0);
  file->checked = header[kReservedBytesOffset] == kPageChecksumBytes;
  if (code != SQLITE_OK || file->checked) return code;
  const int stated = header[16] * 256 + header[17];
  const int bytes = stated == 1 ? 65536 : stated;
  if (!IsPage(bytes, 0) || size < bytes) return SQLITE_OK;  // SQLite reports the damage
  std::vector<unsigned char> page(static_cast<size_t>(bytes));
  code = methods->xRead(file->below, page.data(), bytes, 0);
  page[kReservedBytesOffset] = kPageChecksumBytes;
  file->checked = code == SQLITE_OK && Matches(page.data(), bytes, 0);
  return code;
}

// Whether a page of a log matches its frame's checksum.
bool MatchesLog(sqlite3_file* file, const unsigned char* page, int bytes, sqlite3_int64 offset) {
  const auto read = [file](int64_t at, int size, unsigned char* out) {
    return Below(file)->pMethods->xRead(Below(file), out, size, at) == SQLITE_OK;
  };
  const std::optional<WalHeader> header = ReadWalHeader(read);
  if (!header || header->page_bytes != bytes) return false;
  const sqlite3_int64 frame_bytes = bytes + kFrameHeaderBytes;
  const sqlite3_int64 frame = (offset - kWalHeaderBytes) / frame_bytes;
  return PageOffset(*header, frame) == offset && FrameMatches(*header, frame, page, read);
}

// Whether the access is to the page of a frame, not to a header or a whole frame.
bool IsLogPage(int bytes, sqlite3_int64 offset) {
  return bytes >= kSmallestPage && (bytes & (bytes - 1)) == 0 &&
         offset >= kWalHeaderBytes + kFrameHeaderBytes;
}

int Close(sqlite3_file* file) {
  const int code = Below(file)->pMethods->xClose(Below(file));
  sqlite3_free(Below(file));
  return code;
}

int Read(sqlite3_file* file, void* out, int bytes, sqlite3_int64 offset) {
  const int code = Below(file)->pMethods->xRead(Below(file), out, bytes, offset);
  if (Of(file)->log) {
    if (code != SQLITE_OK || !IsLogPage(bytes, offset)) return code;
    if (offset >= Of(file)->unsettled_from) return code;
    const auto* page = static_cast<const unsigned char*>(out);
    return MatchesLog(file, page, bytes, offset) ? SQLITE_OK : SQLITE_IOERR_DATA;
  }
  if (code != SQLITE_OK || !Of(file)->checked || !IsPage(bytes, offset)) return code;
  return Matches(static_cast<unsigned char*>(out), bytes, offset) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

// A page written without its frame header replaces one that the transaction wrote before.
void TrackLogWrite(File* log, int bytes, sqlite3_int64 offset) {
  if (bytes == kFrameHeaderBytes) log->frame_header = offset;
  if (IsLogPage(bytes, offset) && offset != log->frame_header + kFrameHeaderBytes) {
    log->unsettled_from = std::min(log->unsettled_from, offset);
  }
}

int Write(sqlite3_file* file, const void* bytes_in, int bytes, sqlite3_int64 offset) {
  const sqlite3_io_methods* methods = Below(file)->pMethods;
  if (Of(file)->log) TrackLogWrite(Of(file), bytes, offset);
  if (!Of(file)->checked || !IsPage(bytes, offset)) {
    return CallNeedingSpace([&] { return methods->xWrite(Below(file), bytes_in, bytes, offset); });
  }
  // A copy: SQLite still uses its own buffer.
  thread_local std::vector<unsigned char> page;
  const auto* in = static_cast<const unsigned char*>(bytes_in);
  page.assign(in, in + bytes);
  const Checksum checksum = ChecksumOf(page.data(), bytes, offset);
  std::copy(checksum.begin(), checksum.end(), page.end() - kPageChecksumBytes);
  return CallNeedingSpace([&] { return methods->xWrite(Below(file), page.data(), bytes, offset); });
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (size == 0) Of(file)->checked = Of(file)->database;  // an emptied file is new
  return CallNeedingSpace([&] { return Below(file)->pMethods->xTruncate(Below(file), size); });
}
int Sync(sqlite3_file* file, int flags) {
  Of(file)->unsettled_from = kNoOffset;
  return CallNeedingSpace([&] { return Below(file)->pMethods->xSync(Below(file), flags); });
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return CallNeedingSpace(
      [&] { return Below(file)->pMethods->xShmMap(Below(file), page, size, extend, memory); });
}

// Forwards a file method to the default VFS.
template <auto kMethod, typename... Arguments>
auto Forward(sqlite3_file* file, Arguments... arguments) {
  return (Below(file)->pMethods->*kMethod)(Below(file), arguments...);
}

// Forwards a VFS method to the default VFS.
template <auto kMethod, typename... Arguments>
int ForwardVfs(sqlite3_vfs* /*vfs*/, Arguments... arguments) {
  return (BelowVfs()->*kMethod)(BelowVfs(), arguments...);
}

// Version 2, without memory maps, which would bypass Read.
constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = Forward<&sqlite3_io_methods::xFileSize>,
    .xLock = Forward<&sqlite3_io_methods::xLock>,
    .xUnlock = Forward<&sqlite3_io_methods::xUnlock>,
    .xCheckReservedLock = Forward<&sqlite3_io_methods::xCheckReservedLock>,
    .xFileControl = Forward<&sqlite3_io_methods::xFileControl>,
    .xSectorSize = Forward<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = Forward<&sqlite3_io_methods::xDeviceCharacteristics>,
    .xShmMap = ShmMap,
    .xShmLock = Forward<&sqlite3_io_methods::xShmLock>,
    .xShmBarrier = Forward<&sqlite3_io_methods::xShmBarrier>,
    .xShmUnmap = Forward<&sqlite3_io_methods::xShmUnmap>,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int Open(sqlite3_vfs* /*vfs*/, sqlite3_filename name, sqlite3_file* handle, int flags,
         int* out_flags) {
  sqlite3_vfs* vfs = BelowVfs();
  auto* below = static_cast<sqlite3_file*>(sqlite3_malloc(vfs->szOsFile));
  if (below == nullptr) return SQLITE_NOMEM;
  std::memset(below, 0, static_cast<size_t>(vfs->szOsFile));
  File* file = new (handle) File{
      {nullptr}, below, (flags & SQLITE_OPEN_MAIN_DB) != 0, false, (flags & SQLITE_OPEN_WAL) != 0,
      kNoOffset, 0};
  int code = CallNeedingSpace([&] { return vfs->xOpen(vfs, name, below, flags, out_flags); });
  if (code == SQLITE_OK && file->database) code = DetectChecksums(file);
  if (code == SQLITE_OK) {
    handle->pMethods = &kMethods;  // from now on SQLite closes it
    return SQLITE_OK;
  }
  if (below->pMethods != nullptr) below->pMethods->xClose(below);
  sqlite3_free(below);
  return code;
}

}  // namespace

const char* ChecksumVfsName() {
  static sqlite3_vfs* const vfs = [] {
    sqlite3_initialize();
    static sqlite3_vfs layer = {};
    layer.iVersion = 2;
    layer.szOsFile = sizeof(File);
    layer.mxPathname = BelowVfs()->mxPathname;
    layer.zName = "checked pages";
    layer.xOpen = Open;
    layer.xDelete = ForwardVfs<&sqlite3_vfs::xDelete>;
    layer.xAccess = ForwardVfs<&sqlite3_vfs::xAccess>;
    layer.xFullPathname = ForwardVfs<&sqlite3_vfs::xFullPathname>;
    layer.xRandomness = ForwardVfs<&sqlite3_vfs::xRandomness>;
    layer.xSleep = ForwardVfs<&sqlite3_vfs::xSleep>;
    layer.xCurrentTime = ForwardVfs<&sqlite3_vfs::xCurrentTime>;
    layer.xGetLastError = ForwardVfs<&sqlite3_vfs::xGetLastError>;
    layer.xCurrentTimeInt64 = ForwardVfs<&sqlite3_vfs::xCurrentTimeInt64>;
    sqlite3_vfs_register(&layer, /*makeDflt=*/0);
    return &layer;
  }();
  return vfs->zName;
}

}  // namespace privatemail::sqlite
