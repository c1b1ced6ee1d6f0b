#include "server/image/image_kernels.h"
