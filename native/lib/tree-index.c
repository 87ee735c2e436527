#include "lib/tree-index.h"

#include "lib/fd-message.h"
#include "lib/files.h"
#include "lib/look.h"
#include "lib/open-by-steps.h"
#include "lib/seal.h"
#include "lib/syscalls.h"
#include "lib/tree-question.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* ---- the times of a directory ---- */

#define STATUS_MODIFIED 0x00000040 /* STATX_MTIME */
#define STATUS_CHANGED 0x00000080  /* STATX_CTIME */
#define STATUS_INODE 0x00000100    /* STATX_INO */
#define STATUS_TYPE 0x00000001     /* STATX_TYPE */
#define STATUS_MODE 0x00000002     /* STATX_MODE */
#define STATUS_OF_FILE (STATUS_TYPE | STATUS_MODE | STATUS_CHANGED)
#define STATUS_WANTED (STATUS_TYPE | STATUS_MODIFIED | STATUS_CHANGED | STATUS_INODE | STATUS_MOUNT)
#define STATUS_DONT_SYNC 0x4000    /* AT_STATX_DONT_SYNC: the file systems that are trusted have nothing to ask */
#define STATUS_NO_AUTOMOUNT 0x800  /* AT_NO_AUTOMOUNT */

static int ask(int at, const char *path, unsigned wanted, struct file_status *status) {
  int flags = AT_SYMLINK_NOFOLLOW | STATUS_NO_AUTOMOUNT | STATUS_DONT_SYNC | (path[0] ? 0 : AT_EMPTY_PATH);
  if (syscall(SYS_statx, at, path, flags, wanted, status) < 0) return -1;
  return (status->mask & wanted) == wanted ? 0 : -1;
}

static int look_up(int at, const char *path, struct file_status *status) { return ask(at, path, STATUS_WANTED, status) == 0 && S_ISDIR(status->mode) ? 0 : -1; }

static uint64_t device_of(const struct file_status *status) { return (uint64_t)status->device[0] << 32 | status->device[1]; }

/* Every other time is one that an index cannot hold. */
static int fits(int64_t seconds) { return seconds > 0 && seconds <= UINT32_MAX; }

static struct tree_state state_of(const struct file_status *status) {
  int can_hold = fits(status->changed.seconds) && fits(status->modified.seconds);
  return (struct tree_state){can_hold ? status->inode : 0, {(uint32_t)status->changed.seconds, status->changed.nanoseconds}, {(uint32_t)status->modified.seconds, status->modified.nanoseconds}};
}

int tree_is_trusted(int zone, uint64_t *device, uint64_t *mount) {
  struct statfs file_system;
  struct file_status status;
  if (fstatfs(zone, &file_system) < 0 || look_up(zone, "", &status) < 0) return 0;
  *device = device_of(&status);
  *mount = status.mount;
  return look_is_plain(&file_system);
}

#define SECOND_NS 1000000000ll
/* Two ticks of the slowest clock (CONFIG_HZ=100), and as much again. */
#define YOUNG_NS 40000000ll

/* A file system with small inodes keeps whole seconds. A time to come is that of a clock that was set back. */
static int is_young(const struct tree_time *time, const struct timespec *begun) {
  long long seconds = begun->tv_sec - (long long)time->seconds;
  if (seconds > 3) return 0;
  long long age = seconds * SECOND_NS + begun->tv_nsec - time->nanoseconds;
  return age < (time->nanoseconds == 0 ? 2 * SECOND_NS : YOUNG_NS);
}

struct tree_state tree_state_of(int directory, uint64_t device, uint64_t mount, const struct timespec *begun) {
  struct file_status status;
  if (look_up(directory, "", &status) < 0 || device_of(&status) != device || status.mount != mount) return (struct tree_state){0};
  struct tree_state state = state_of(&status);
  return is_young(&state.changed, begun) || is_young(&state.modified, begun) ? (struct tree_state){0} : state;
}

struct tree_file tree_file_of(const struct timespec *changed, const struct timespec *begun) {
  struct tree_file file = {.changed = {(uint32_t)changed->tv_sec, (uint32_t)changed->tv_nsec}};
  return !fits(changed->tv_sec) || is_young(&file.changed, begun) ? (struct tree_file){0} : file;
}

/* A file that is mounted here has another name, by which it can change unseen by who watches the directory. */
int tree_is_same_file(int directory, const char *name, const struct tree_file *file) {
  struct file_status status;
  if (file->changed.seconds == 0 || ask(directory, name, STATUS_OF_FILE, &status) < 0 || !S_ISREG(status.mode) || (status.mode & (S_ISUID | S_ISGID)) || (status.attributes & STATUS_IS_MOUNTED)) return 0;
  return status.changed.seconds == file->changed.seconds && status.changed.nanoseconds == file->changed.nanoseconds;
}

static int same_time(const struct tree_time *a, const struct tree_time *b) { return a->seconds == b->seconds && a->nanoseconds == b->nanoseconds; }

int tree_is_same(int at, const char *path, const struct tree_index *index, const struct tree_state *state) {
  struct file_status status;
  if (state->inode == 0 || look_up(at, path, &status) < 0 || device_of(&status) != index->device || status.mount != index->mount) return 0;
  struct tree_state now = state_of(&status);
  return now.inode == state->inode && same_time(&now.changed, &state->changed) && same_time(&now.modified, &state->modified);
}

/* ---- in memory ---- */

struct head {
  char seal[MAC_TEXT]; /* of all bytes after it */
  char format[32];
  uint64_t device, inode, hides;
  uint32_t directories, files, names_size, has_files, has_systems;
};

/* Change its number together with the layout, or with the contexts of the walk (lib/walk.c). */
#define FORMAT "tree index 6"

void tree_free(struct tree_index *index) {
  if (index->generation) munmap(index->bytes, index->size), close(index->watcher);
  else free(index->bytes);
  *index = (struct tree_index){0};
}

static size_t size_of(const struct head *head) {
  return sizeof *head + head->directories * sizeof(struct tree_directory) + head->files * sizeof(struct tree_file) + head->names_size;
}

/* Behind the head: directories, files, names. */
static void find_parts(struct tree_index *index) {
  const struct head *head = (const struct head *)index->bytes;
  index->directory = (const struct tree_directory *)(index->bytes + sizeof *head);
  index->file = (const struct tree_file *)(index->directory + head->directories);
  index->names = (const char *)(index->file + head->files);
  index->directories = head->directories, index->files = head->files, index->names_size = head->names_size;
  index->has_files = head->has_files, index->has_systems = head->has_systems, index->hides = head->hides;
}

int tree_make(struct tree_index *index, const struct tree_index *parts) {
  size_t directories = parts->directories * sizeof *parts->directory, files = parts->files * sizeof *parts->file;
  *index = (struct tree_index){.size = sizeof(struct head) + directories + files + parts->names_size, .device = parts->device, .mount = parts->mount};
  index->bytes = malloc(index->size);
  if (!index->bytes) return -1;
  struct head *head = (struct head *)index->bytes;
  *head = (struct head){.directories = parts->directories, .files = parts->files, .names_size = parts->names_size, .has_files = parts->has_files, .has_systems = parts->has_systems, .hides = parts->hides};
  find_parts(index);
  memcpy(head + 1, parts->directory, directories);
  if (files > 0) memcpy((char *)(head + 1) + directories, parts->file, files);
  memcpy((char *)(head + 1) + directories + files, parts->names, parts->names_size);
  return 0;
}

/* Entries that were added or removed move the others: more than this between two known ones are listed anew. */
#define MOVED_MAX 64

int tree_find(const struct tree_index *index, uint32_t above, uint32_t from, const char *name) {
  const struct tree_directory *parent = &index->directory[above];
  for (uint32_t i = 0; i < MOVED_MAX && from + i < parent->count; i++)
    if (strcmp(index->names + index->directory[parent->first + from + i].name, name) == 0) return (int)(parent->first + from + i);
  return -1;
}

int tree_find_named(const struct tree_index *index, uint32_t above, const char *name) {
  const struct tree_directory *parent = &index->directory[above];
  for (uint32_t i = parent->first; i < parent->first + parent->count; i++)
    if (index->directory[i].is_named && strcmp(index->names + index->directory[i].name, name) == 0) return (int)i;
  return -1;
}

uint8_t *tree_just_listed(const struct tree_index *index) {
  uint8_t *same = index->bytes ? malloc(index->directories) : NULL;
  for (uint32_t at = 0; same && at < index->directories; at++) same[at] = index->directory[at].state.inode != 0;
  return same;
}

/* ---- on disk ---- */

/* One for each large zone; the oldest goes. They lie in memory, as a rule: 8 MiB hold some 100,000 directories, or 200,000 files of root's. */
#define KEPT_MAX 16
/* Fewer directories are listed in the time that a file takes. */
#define KEPT_DIRECTORIES_MIN 64
#define KEPT_BYTES_MAX (8u << 20)

/*
 * Next to the secret of the seals, which only lies where no zone can be (lib/seal.h). A user without a runtime directory has the directory of the
 * runs below /tmp, where a command may be able to write.
 */
int tree_open_place(const char *runs, int is_made, unsigned char *secret) {
  char own[PATH_MAX], path[PATH_MAX];
  struct stat status;
  const char *slash = strrchr(runs, '/');
  if (!slash || (size_t)snprintf(own, sizeof own, "%.*s", (int)(slash - runs), runs) >= sizeof own || secret_read_in(own, secret) < 0) return -1;
  if ((size_t)snprintf(path, sizeof path, "%s/trees", own) >= sizeof path) return -1;
  if (is_made) (void)mkdir(path, 0700);
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 077) == 0)) return fd;
  return close_with(fd, -1);
}

void tree_name(char *name, size_t room, uint64_t device, uint64_t inode, uint64_t hides) {
  snprintf(name, room, "%llx-%llx-%llx", (unsigned long long)device, (unsigned long long)inode, (unsigned long long)hides);
}

static int name_of(int zone, uint64_t hides, char *name, size_t room, struct file_status *status) {
  if (look_up(zone, "", status) < 0) return -1;
  tree_name(name, room, device_of(status), status->inode, hides);
  return 0;
}

static int read_whole(struct tree_index *index, int fd) {
  struct stat status;
  if (fstat(fd, &status) < 0 || status.st_uid != geteuid() || status.st_size <= (off_t)sizeof(struct head) || status.st_size > (off_t)KEPT_BYTES_MAX) return -1;
  index->size = (size_t)status.st_size;
  index->bytes = malloc(index->size);
  return index->bytes && pread(fd, index->bytes, index->size, 0) == (ssize_t)index->size ? 0 : -1;
}

/* A name or a number that is missing would hide a directory, so only what tree_keep has written is read. */
static void seal_of(const struct tree_index *index, const unsigned char secret[SECRET_BYTES], char seal[MAC_TEXT]) {
  seal_for(secret, FORMAT, index->bytes + MAC_TEXT, index->size - MAC_TEXT, seal);
}

static int accept(struct tree_index *index, const struct file_status *root, uint64_t hides, const unsigned char secret[SECRET_BYTES]) {
  const struct head *head = (const struct head *)index->bytes;
  char seal[MAC_TEXT];
  seal_of(index, secret, seal);
  if (memcmp(seal, head->seal, sizeof seal) != 0 || head->device != device_of(root) || head->inode != root->inode || head->hides != hides) return 0;
  find_parts(index);
  index->device = device_of(root);
  index->mount = root->mount;
  return 1;
}

/* Descriptor of the file, or -1. */
static int open_kept(int place, int zone, uint64_t hides, struct file_status *root) {
  char name[64];
  return place >= 0 && name_of(zone, hides, name, sizeof name, root) == 0 ? openat(place, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

void tree_read_kept(struct tree_index *index, int zone, uint64_t hides, const char *runs) {
  unsigned char secret[SECRET_BYTES];
  struct file_status root;
  int place = tree_open_place(runs, 0, secret), fd = open_kept(place, zone, hides, &root);
  *index = (struct tree_index){0};
  if (fd >= 0 && (read_whole(index, fd) < 0 || !accept(index, &root, hides, secret))) tree_free(index);
  if (fd >= 0) close(fd);
  if (place >= 0) close(place);
}

/* The watcher may be of another version than we are. */
int tree_map(struct tree_index *index, int memory, size_t size) {
  void *bytes = size > sizeof(struct head) ? mmap(NULL, size, PROT_READ, MAP_SHARED, memory, 0) : MAP_FAILED;
  if (bytes == MAP_FAILED) return -1;
  if (strncmp(((struct head *)bytes)->format, FORMAT, sizeof((struct head *)bytes)->format) != 0 || size_of(bytes) != size) return munmap(bytes, size), -1;
  *index = (struct tree_index){.bytes = bytes, .size = size};
  find_parts(index);
  return 0;
}

/* A smaller one is read, and its directories are asked for, in the time that a question takes. */
#define WATCHED_BYTES_MIN (64 << 10)

/* 1 = a watcher has it. */
static int borrow(struct tree_index *index, int place, int zone, uint64_t hides, const struct file_status *root) {
  struct tree_answer answer;
  int watcher = tree_connect(place), memory = zone;
  const struct tree_question question = {device_of(root), root->inode, root->mount, hides, 0};
  int has_memory = watcher >= 0 && tree_ask(watcher, &question, &memory, &answer) && memory >= 0;
  int is_mapped = has_memory && tree_map(index, memory, answer.size) == 0;
  if (has_memory) close(memory);
  if (!is_mapped) return close_with(watcher, 0);
  index->device = question.device, index->mount = question.mount;
  index->generation = answer.generation, index->watcher = watcher;
  return 1;
}

void tree_read(struct tree_index *index, int zone, uint64_t hides, const char *runs) {
  unsigned char secret[SECRET_BYTES];
  struct file_status root;
  struct stat status;
  int place = tree_open_place(runs, 0, secret), fd = open_kept(place, zone, hides, &root);
  int is_borrowed = fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= WATCHED_BYTES_MIN && borrow(index, place, zone, hides, &root);
  if (fd >= 0) close(fd);
  if (place >= 0) close(place);
  if (!is_borrowed) tree_read_kept(index, zone, hides, runs);
}

/* Returns how many there are, and the oldest. */
static int find_oldest(DIR *listing, char oldest[NAME_MAX + 1]) {
  struct timespec first = {0};
  int count = 0;
  for (struct dirent *entry; (entry = readdir(listing));) {
    struct stat status;
    if (entry->d_name[0] == '.' || fstatat(dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (count++ > 0 && (status.st_mtim.tv_sec > first.tv_sec || (status.st_mtim.tv_sec == first.tv_sec && status.st_mtim.tv_nsec >= first.tv_nsec))) continue;
    first = status.st_mtim;
    snprintf(oldest, NAME_MAX + 1, "%s", entry->d_name);
  }
  return count;
}

static void drop_oldest(int place) {
  char oldest[NAME_MAX + 1];
  DIR *listing = entries_open(place);
  if (!listing) return;
  if (find_oldest(listing, oldest) > KEPT_MAX) (void)unlinkat(place, oldest, 0);
  closedir(listing);
}

/* Another run may keep its own at the same time: whichever is last is as good. */
static void replace(int place, const char *name, const struct tree_index *index) {
  char temporary[96];
  snprintf(temporary, sizeof temporary, "%s.%d", name, getpid());
  int fd = openat(place, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (close_with(fd, write_all(fd, index->bytes, index->size)) < 0 || renameat(place, temporary, place, name) < 0) (void)unlinkat(place, temporary, 0);
}

int tree_is_kept(const struct tree_index *index) { return index->bytes && index->directories >= KEPT_DIRECTORIES_MIN && index->size <= KEPT_BYTES_MAX; }

void tree_keep(const struct tree_index *index, int zone, const char *runs) {
  char name[64];
  unsigned char secret[SECRET_BYTES];
  struct file_status root;
  if (!tree_is_kept(index)) return;
  int place = tree_open_place(runs, 1, secret);
  if (place >= 0 && name_of(zone, index->hides, name, sizeof name, &root) == 0) {
    struct head *head = (struct head *)index->bytes;
    snprintf(head->format, sizeof head->format, "%s", FORMAT);
    head->device = device_of(&root), head->inode = root.inode;
    seal_of(index, secret, head->seal);
    replace(place, name, index);
    drop_oldest(place);
  }
  if (place >= 0) close(place);
}

void tree_forget(int zone, uint64_t hides, const char *runs) {
  char name[64];
  unsigned char secret[SECRET_BYTES];
  struct file_status root;
  int place = tree_open_place(runs, 0, secret);
  if (place >= 0 && name_of(zone, hides, name, sizeof name, &root) == 0) (void)unlinkat(place, name, 0);
  if (place >= 0) close(place);
}
