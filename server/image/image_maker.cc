#include "server/image/image_maker.h"
