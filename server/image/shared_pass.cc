#include "server/image/shared_pass.h"
