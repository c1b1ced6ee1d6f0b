// `privatemail collection create`.
#ifndef PRIVATEMAIL_CLIENT_CLI_CREATE_COLLECTION_H_
#define PRIVATEMAIL_CLIENT_CLI_CREATE_COLLECTION_H_

#include "client/cli/command.h"

namespace privatemail::client::cli {

void AddCreateCollectionCommand(CLI::App& collection, Context& context);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_CREATE_COLLECTION_H_
