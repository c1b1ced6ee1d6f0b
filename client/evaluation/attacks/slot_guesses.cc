#include "client/evaluation/attacks/slot_guesses.h"

namespace privatemail::client {

int64_t SlotOfMost(int64_t slots, absl::FunctionRef<double(int64_t slot)> score) {
  int64_t most = 0;
  double largest = score(0);
  for (int64_t slot = 1; slot < slots; ++slot) {
    const double of_slot = score(slot);
    if (of_slot > largest) {
      largest = of_slot;
      most = slot;
    }
  }
  return most;
}

}  // namespace privatemail::client
