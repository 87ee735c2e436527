/* Two programs hold several parts. Each part takes a command line, its name first. */
#pragma once

/* llm-do.c: what runs on the host. */
int client_main(int argc, char **argv);
int exec_in_main(int argc, char **argv);
/* `exec --in` with the words behind `exec`. Returns an exit status, or -1 where Node has to do it and nothing has happened yet. */
int exec_in_by_name(char **argv);
int guard_main(int argc, char **argv);
int launch_main(int argc, char **argv);
int layers_main(int argc, char **argv);
int pool_main(int argc, char **argv);
int runs_main(int argc, char **argv);

/* container.c: what serves a container. */
int container_init_main(int argc, char **argv);
int container_network_main(int argc, char **argv);
