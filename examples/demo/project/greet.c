#include "greet.h"

const char *greeting(void)
{
	return "built inside the sandbox";
}
