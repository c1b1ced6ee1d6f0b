// The entry of the scheme cells in the table of schemes.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_CELLS_CELLS_ENTRY_H_
#define PRIVATEMAIL_CLIENT_SEARCH_CELLS_CELLS_ENTRY_H_

#include "client/search/scheme_entry.h"

namespace privatemail::client {

SchemeEntry CellsEntry();

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_CELLS_CELLS_ENTRY_H_
