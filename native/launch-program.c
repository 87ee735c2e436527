#include "launch.h"

int main(int argc, char **argv) { return launch_program(argc, argv); }
