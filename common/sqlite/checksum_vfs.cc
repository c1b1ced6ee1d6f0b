#include "common/sqlite/checked_pages.h"

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

#include "common/sqlite/log_frames.h"

namespace privatemail::sqlite {
namespace {

constexpr int kHeaderBytes = 100;         // of a database file, at its beginning
constexpr int kReservedBytesOffset = 20;  // therein
constexpr int kSmallestPage = 512;

using Checksum = std::array<unsigned char, kPageChecksumBytes>;

// What SQLite asks for by its handle. The file below lies behind `below`.
struct File {
  sqlite3_file handle;
  sqlite3_file* below;
  bool database;  // and no journal or log
  bool checked;   // a database whose pages end with checksums
  bool log;       // a write-ahead log, whose frames have checksums of SQLite's own
  // Of a log: until a transaction that changes a page twice ends, the frames from here on have
  // checksums that SQLite has still to put right. Nobody else reads them before.
  sqlite3_int64 unsettled_from;
  sqlite3_int64 frame_header;  // where the last one was written
};

constexpr sqlite3_int64 kNowhere = std::numeric_limits<sqlite3_int64>::max();

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Below(sqlite3_file* file) { return Of(file)->below; }
sqlite3_vfs* BelowVfs() { return sqlite3_vfs_find(nullptr); }

// A database file is read and written by whole pages, but for its header.
bool IsPage(int bytes, sqlite3_int64 offset) {
  return bytes >= kSmallestPage && (bytes & (bytes - 1)) == 0 && offset % bytes == 0;
}

// Makes a call to the layer below that may need space; tells SQLITE_FULL where there is none.
template <typename Call>
int Changing(const Call& call) {
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

// Whether a file has checksums. One that is empty will have them. Where the header says no, damage
// to the very byte that says so is told apart by the checksum that the first page still has.
int FindOutWhetherChecked(File* file) {
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
  if (!IsPage(bytes, 0) || size < bytes) return SQLITE_OK;  // SQLite says what is wrong with it
  std::vector<unsigned char> page(static_cast<size_t>(bytes));
  code = methods->xRead(file->below, page.data(), bytes, 0);
  page[kReservedBytesOffset] = kPageChecksumBytes;
  file->checked = code == SQLITE_OK && Matches(page.data(), bytes, 0);
  return code;
}

// Whether a page of a log is what was written.
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

// The page of a frame, and no header and no frame as a whole.
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

// A page that does not follow its frame's header replaces one that the transaction wrote before.
void Note(File* log, int bytes, sqlite3_int64 offset) {
  if (bytes == kFrameHeaderBytes) log->frame_header = offset;
  if (IsLogPage(bytes, offset) && offset != log->frame_header + kFrameHeaderBytes) {
    log->unsettled_from = std::min(log->unsettled_from, offset);
  }
}

int Write(sqlite3_file* file, const void* bytes_in, int bytes, sqlite3_int64 offset) {
  const sqlite3_io_methods* methods = Below(file)->pMethods;
  if (Of(file)->log) Note(Of(file), bytes, offset);
  if (!Of(file)->checked || !IsPage(bytes, offset)) {
    return Changing([&] { return methods->xWrite(Below(file), bytes_in, bytes, offset); });
  }
  // Bytes that SQLite still uses are not written to: only those of a page that lies elsewhere.
  thread_local std::vector<unsigned char> page;
  const auto* in = static_cast<const unsigned char*>(bytes_in);
  page.assign(in, in + bytes);
  const Checksum checksum = ChecksumOf(page.data(), bytes, offset);
  std::copy(checksum.begin(), checksum.end(), page.end() - kPageChecksumBytes);
  return Changing([&] { return methods->xWrite(Below(file), page.data(), bytes, offset); });
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (size == 0) Of(file)->checked = Of(file)->database;  // what was cut short begins anew
  return Changing([&] { return Below(file)->pMethods->xTruncate(Below(file), size); });
}
int Sync(sqlite3_file* file, int flags) {
  Of(file)->unsettled_from = kNowhere;
  return Changing([&] { return Below(file)->pMethods->xSync(Below(file), flags); });
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Below(file)->pMethods->xFileSize(Below(file), size);
}
int Lock(sqlite3_file* file, int level) { return Below(file)->pMethods->xLock(Below(file), level); }
int Unlock(sqlite3_file* file, int level) {
  return Below(file)->pMethods->xUnlock(Below(file), level);
}
int CheckReservedLock(sqlite3_file* file, int* held) {
  return Below(file)->pMethods->xCheckReservedLock(Below(file), held);
}
int FileControl(sqlite3_file* file, int operation, void* argument) {
  return Below(file)->pMethods->xFileControl(Below(file), operation, argument);
}
int SectorSize(sqlite3_file* file) { return Below(file)->pMethods->xSectorSize(Below(file)); }
int DeviceCharacteristics(sqlite3_file* file) {
  return Below(file)->pMethods->xDeviceCharacteristics(Below(file));
}
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** memory) {
  return Changing(
      [&] { return Below(file)->pMethods->xShmMap(Below(file), page, size, extend, memory); });
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Below(file)->pMethods->xShmLock(Below(file), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Below(file)->pMethods->xShmBarrier(Below(file)); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Below(file)->pMethods->xShmUnmap(Below(file), remove);
}

// Version 2, which has no memory maps: what is mapped is read past Read.
constexpr sqlite3_io_methods kMethods = {2,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         DeviceCharacteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         nullptr,
                                         nullptr};

int Open(sqlite3_vfs* /*vfs*/, sqlite3_filename name, sqlite3_file* handle, int flags,
         int* out_flags) {
  sqlite3_vfs* vfs = BelowVfs();
  auto* below = static_cast<sqlite3_file*>(sqlite3_malloc(vfs->szOsFile));
  if (below == nullptr) return SQLITE_NOMEM;
  std::memset(below, 0, static_cast<size_t>(vfs->szOsFile));
  File* file = new (handle) File{
      {nullptr}, below, (flags & SQLITE_OPEN_MAIN_DB) != 0, false, (flags & SQLITE_OPEN_WAL) != 0,
      kNowhere,  0};
  int code = Changing([&] { return vfs->xOpen(vfs, name, below, flags, out_flags); });
  if (code == SQLITE_OK && file->database) code = FindOutWhetherChecked(file);
  if (code == SQLITE_OK) {
    handle->pMethods = &kMethods;  // from here on SQLite closes it
    return SQLITE_OK;
  }
  if (below->pMethods != nullptr) below->pMethods->xClose(below);
  sqlite3_free(below);
  return code;
}

int Delete(sqlite3_vfs* /*vfs*/, const char* name, int sync_folder) {
  return BelowVfs()->xDelete(BelowVfs(), name, sync_folder);
}
int Access(sqlite3_vfs* /*vfs*/, const char* name, int flags, int* result) {
  return BelowVfs()->xAccess(BelowVfs(), name, flags, result);
}
int FullPathname(sqlite3_vfs* /*vfs*/, const char* name, int size, char* out) {
  return BelowVfs()->xFullPathname(BelowVfs(), name, size, out);
}
int Randomness(sqlite3_vfs* /*vfs*/, int bytes, char* out) {
  return BelowVfs()->xRandomness(BelowVfs(), bytes, out);
}
int Sleep(sqlite3_vfs* /*vfs*/, int microseconds) {
  return BelowVfs()->xSleep(BelowVfs(), microseconds);
}
int CurrentTime(sqlite3_vfs* /*vfs*/, double* days) {
  return BelowVfs()->xCurrentTime(BelowVfs(), days);
}
int GetLastError(sqlite3_vfs* /*vfs*/, int size, char* out) {
  return BelowVfs()->xGetLastError(BelowVfs(), size, out);
}
int CurrentTimeInt64(sqlite3_vfs* /*vfs*/, sqlite3_int64* milliseconds) {
  return BelowVfs()->xCurrentTimeInt64(BelowVfs(), milliseconds);
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
    layer.xDelete = Delete;
    layer.xAccess = Access;
    layer.xFullPathname = FullPathname;
    layer.xRandomness = Randomness;
    layer.xSleep = Sleep;
    layer.xCurrentTime = CurrentTime;
    layer.xGetLastError = GetLastError;
    layer.xCurrentTimeInt64 = CurrentTimeInt64;
    sqlite3_vfs_register(&layer, /*makeDflt=*/0);
    return &layer;
  }();
  return vfs->zName;
}

}  // namespace privatemail::sqlite
