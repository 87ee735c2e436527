#include "lib/run-record.h"
#include "unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

/* Of so many, three meet the one who looks between the making of the file and its lock. */
#define RECORDS 10000

static int ignore_record(const struct record_content *content, int fd, void *data) {
  (void)content, (void)fd, (void)data;
  return 0;
}

/* Looks at every record, as ps does, as often as it can. */
static pid_t start_looking(int directory) {
  pid_t pid = fork();
  while (pid == 0) records_each(directory, ignore_record, NULL);
  return pid;
}

UNIT("a record can be made while somebody looks which runs are alive") {
  const char *directory = unit_directory();
  int made = 0, fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT(fd >= 0);
  pid_t looking = start_looking(fd);
  for (int i = 0; i < RECORDS; i++) {
    char id[16];
    snprintf(id, sizeof id, "run%d", i);
    int record = record_create(fd, id);
    made += record >= 0;
    if (record >= 0) record_remove(fd, id, record);
    else unlinkat(fd, id, 0);
  }
  EXPECT_NUMBER(made, RECORDS);
  EXPECT(kill(looking, SIGKILL) == 0 && waitpid(looking, NULL, 0) == looking);
  close(fd);
  unit_remove(directory);
}
