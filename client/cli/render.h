// Results of commands as text, from their JSON.
#ifndef PRIVATEMAIL_CLIENT_CLI_RENDER_H_
#define PRIVATEMAIL_CLIENT_CLI_RENDER_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace privatemail::client::cli {

// The members that a table shows, in this order, by the table's name; "" is the result itself.
using Columns = std::map<std::string, std::vector<std::string>>;

// JSON as lines of text, each with its newline:
//   object             "name  value" for each member, values aligned; "_" of names becomes " "
//   object within it   indented below its name; on the line of its name if it holds few numbers
//   array of scalars   one line, separated by commas
//   array of objects   a table; without columns, if it would be wide, a block for each object
//   null and empty     -; "none" if it is the result itself
//   true and false     yes and no
//   number             all digits; six in a table, or if `rounded`
//   integer "..._at"   Unix seconds as a time in UTC
//   value, low, high   "value (low to high)" to hundredths, an estimate with its interval
// Texts of a server are in rows of tables or single strings: control characters are escaped and a
// row's members stay on one line each, so that none begins a line of its own. "warnings" are left
// out, since they are on standard error.
std::string Render(const nlohmann::json& json, const Columns& columns = {}, bool rounded = false);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_RENDER_H_
