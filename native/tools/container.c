/*
 * container: what serves a container of the docker backend.
 *
 *   container network NET SOCKET   holds the helper of its network, on the host (tools/container-net.c)
 *   container WORD...              the first process inside (tools/container-init.c), whose words begin with `-` or `/`
 */
#include "lib/programs.h"

#include <string.h>

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "network") == 0) return container_network_main(argc - 1, argv + 1);
  return container_init_main(argc, argv);
}
