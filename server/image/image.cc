#include "server/image/image.h"
