#include "common/sqlite/checksum_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "common/sqlite/checksums.h"

namespace privatemail::sqlite {
namespace {

// The file object of this VFS. `below`: the file of the default VFS.
struct File {
  sqlite3_file handle;
  sqlite3_file* below;
  bool database;  // not a journal or log: its pages end with checksums
  bool log;       // a write-ahead log, whose frames have checksums of SQLite's own
  // The offset in a log from which frames have checksums that SQLite corrects only at the end of a
  // transaction that changes a page twice. No other connection reads them before.
  sqlite3_int64 unsettled_from;
  sqlite3_int64 frame_header;  // offset of the last one written
  File* main;                  // of a log: its database
  // The flag of a database, see UseLogFlag.
  bool uses_log_flag;
  bool log_flag;
};

constexpr sqlite3_int64 kNoOffset = std::numeric_limits<sqlite3_int64>::max();

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Below(sqlite3_file* file) { return Of(file)->below; }
sqlite3_vfs* BelowVfs() { return sqlite3_vfs_find(nullptr); }

// Calls the default VFS; returns SQLITE_FULL if it failed for lack of space.
template <typename Call>
int CallNeedingSpace(const Call& call) {
  errno = 0;
  const int code = call();
  const int kind = code & 0xff;
  const bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;
  return full && (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) ? SQLITE_FULL : code;
}

// Empty: a new file.
int ReadFirstPage(File* main, std::vector<unsigned char>* page) {
  sqlite3_int64 size = 0;
  const sqlite3_io_methods* methods = main->below->pMethods;
  if (const int code = methods->xFileSize(main->below, &size); code != SQLITE_OK) return code;
  page->clear();
  if (size < kDatabaseHeaderBytes) return SQLITE_OK;
  page->resize(kDatabaseHeaderBytes);
  int code = methods->xRead(main->below, page->data(), kDatabaseHeaderBytes, 0);
  if (code != SQLITE_OK) return code;
  const int bytes = PageBytesOf(page->data());
  if (bytes == 0 || size < bytes) return SQLITE_IOERR_DATA;
  page->resize(static_cast<size_t>(bytes));
  return methods->xRead(main->below, page->data(), bytes, 0);
}

// The flag is durable once the function returns. No other connection writes the file while it runs:
// the caller is a writer that has synced the log, or the connection that has moved all of it.
int WriteLogFlag(File* main, bool flag) try {
  std::vector<unsigned char> page;
  int code = ReadFirstPage(main, &page);
  if (code != SQLITE_OK || page.empty()) return code;
  const auto bytes = static_cast<int>(page.size());
  const std::optional<bool> found = ReadLogFlag(page.data(), bytes);
  if (!found) return SQLITE_IOERR_DATA;
  const sqlite3_io_methods* methods = main->below->pMethods;
  if (*found != flag) {
    const unsigned char last = WithLogFlag(page.back());
    code = CallNeedingSpace([&] { return methods->xWrite(main->below, &last, 1, bytes - 1); });
    if (code != SQLITE_OK) return code;
  }
  code = CallNeedingSpace([&] { return methods->xSync(main->below, SQLITE_SYNC_NORMAL); });
  if (code == SQLITE_OK) main->log_flag = flag;
  return code;
} catch (const std::bad_alloc&) {  // SQLite's frames must not see it
  return SQLITE_NOMEM;
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
  return IsPage(bytes, 0) && offset >= kWalHeaderBytes + kFrameHeaderBytes;
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
  if (code != SQLITE_OK || !Of(file)->database || !IsPage(bytes, offset)) return code;
  return PageMatches(static_cast<unsigned char*>(out), bytes, offset) ? SQLITE_OK
                                                                      : SQLITE_IOERR_DATA;
}

// A page written without its frame header replaces one that the transaction wrote before.
void TrackLogWrite(File* log, int bytes, sqlite3_int64 offset) {
  if (bytes == kFrameHeaderBytes) log->frame_header = offset;
  if (IsLogPage(bytes, offset) && offset != log->frame_header + kFrameHeaderBytes) {
    log->unsettled_from = std::min(log->unsettled_from, offset);
  }
}

int Write(sqlite3_file* file, const void* bytes_in, int bytes, sqlite3_int64 offset) try {
  const sqlite3_io_methods* methods = Below(file)->pMethods;
  if (Of(file)->log) TrackLogWrite(Of(file), bytes, offset);
  if (!Of(file)->database || !IsPage(bytes, offset)) {
    return CallNeedingSpace([&] { return methods->xWrite(Below(file), bytes_in, bytes, offset); });
  }
  // A copy: SQLite still uses its own buffer.
  thread_local std::vector<unsigned char> page;
  const auto* in = static_cast<const unsigned char*>(bytes_in);
  page.assign(in, in + bytes);
  const PageChecksum checksum = ChecksumOfPage(page.data(), bytes, offset);
  std::copy(checksum.begin(), checksum.end(), page.end() - kPageChecksumBytes);
  if (offset == 0 && Of(file)->log_flag) page.back() = WithLogFlag(page.back());
  return CallNeedingSpace([&] { return methods->xWrite(Below(file), page.data(), bytes, offset); });
} catch (const std::bad_alloc&) {  // SQLite's frames must not see it
  return SQLITE_NOMEM;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  return CallNeedingSpace([&] { return Below(file)->pMethods->xTruncate(Below(file), size); });
}
int Sync(sqlite3_file* file, int flags) {
  Of(file)->unsettled_from = kNoOffset;
  const int code =
      CallNeedingSpace([&] { return Below(file)->pMethods->xSync(Below(file), flags); });
  File* main = Of(file)->main;
  if (code != SQLITE_OK || main == nullptr || !main->uses_log_flag || main->log_flag) return code;
  return WriteLogFlag(main, true);
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
  const bool log = (flags & SQLITE_OPEN_WAL) != 0;
  new (handle) File{.handle = {nullptr},
                    .below = below,
                    .database = (flags & SQLITE_OPEN_MAIN_DB) != 0,
                    .log = log,
                    .unsettled_from = kNoOffset,
                    .frame_header = 0,
                    .main = log ? Of(sqlite3_database_file_object(name)) : nullptr,
                    .uses_log_flag = false,
                    .log_flag = false};
  const int code = CallNeedingSpace([&] { return vfs->xOpen(vfs, name, below, flags, out_flags); });
  if (code == SQLITE_OK) {
    handle->pMethods = &kMethods;  // from now on SQLite closes it
    return SQLITE_OK;
  }
  if (below->pMethods != nullptr) below->pMethods->xClose(below);
  sqlite3_free(below);
  return code;
}

File* MainFileOf(sqlite3* database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database, nullptr, SQLITE_FCNTL_FILE_POINTER, &file);
  return Of(file);
}

}  // namespace

void UseLogFlag(sqlite3* database) {
  File* main = MainFileOf(database);
  std::vector<unsigned char> page;
  const int code = ReadFirstPage(main, &page);
  // A power loss may have left parts of the first page, whose whole is then in the log: the
  // checkpoint that mends it writes the flag.
  main->log_flag =
      code != SQLITE_OK ||
      (!page.empty() && ReadLogFlag(page.data(), static_cast<int>(page.size())).value_or(true));
  main->uses_log_flag = true;
}

int ClearLogFlag(sqlite3* database) {
  File* main = MainFileOf(database);
  return main->uses_log_flag && main->log_flag ? WriteLogFlag(main, false) : SQLITE_OK;
}

const char* ChecksumVfsName() {
  static sqlite3_vfs* const vfs = [] {
    sqlite3_initialize();
    // The other methods of the default VFS depend on its data alone, which the copy shares.
    static sqlite3_vfs layer = *BelowVfs();
    layer.szOsFile = sizeof(File);
    layer.zName = "checked pages";
    layer.xOpen = Open;
    sqlite3_vfs_register(&layer, /*makeDflt=*/0);
    return &layer;
  }();
  return vfs->zName;
}

}  // namespace privatemail::sqlite
