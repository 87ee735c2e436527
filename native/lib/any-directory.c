#include "lib/any-directory.h"

#include "lib/arena.h"
#include "lib/launch-cache.h"
#include "lib/seal.h"
#include "lib/sha256.h"
#include "lib/syscalls.h"
#include "lib/text.h"
#include "lib/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* U+FFFD, by which Node shows bytes that are not UTF-8. */
#define REPLACEMENT "\xef\xbf\xbd"

static int is_within(const char *path, const char *directory) {
  return strcmp(directory, "/") == 0 || is_at_or_below(path, directory);
}

static const char *because(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *because(const char *format, ...) {
  static char text[PATH_MAX + 200];
  va_list words;
  va_start(words, format);
  vsnprintf(text, sizeof text, format, words);
  va_end(words);
  return text;
}

static const char *path_unfit(const char *path) {
  return utf8_is_text(path, strlen(path)) && !strstr(path, REPLACEMENT) ? NULL : "its path is not UTF-8";
}

static int is_same(const struct stat *one, const struct stat *other) { return one->st_dev == other->st_dev && one->st_ino == other->st_ino; }

const char *places_begin(struct places *places) {
  struct place *place = &places->place[0];
  struct stat here;
  places->count = 1;
  if (!getcwd(place->path, sizeof place->path)) return because("it has no path: %s", strerror(errno));
  if (place->path[0] != '/') return "it is outside of the root directory";
  if (stat(".", &here) < 0 || lstat(place->path, &place->status) < 0) return because("it cannot be looked at: %s", strerror(errno));
  return is_same(&here, &place->status) ? path_unfit(place->path) : "another directory is at its path now";
}

/* As the kernel would write it: no part of it is empty, `.` or `..`. */
static int is_tidy(const char *path) {
  for (const char *part = path; *part; part += 1 + strcspn(part + 1, "/")) {
    size_t length = strcspn(part + 1, "/");
    if (part[0] != '/' || length == 0 || (length <= 2 && strncmp(part + 1, "..", length) == 0)) return 0;
  }
  return path[0] == '/';
}

const char *places_add(struct places *places, const char *path, size_t length) {
  struct place *place = &places->place[places->count];
  if (places->count > PLACE_ZONES_MAX || length >= sizeof place->path) return "too many or too long names";
  memcpy(place->path, path, length);
  place->path[length] = 0;
  places->count++;
  if (!is_tidy(place->path)) return because("%s is not the shortest form of its path", place->path);
  int fd = sys_openat2(AT_FDCWD, place->path, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (fd < 0) return because("%s cannot be opened as a directory without following links: %s", place->path, strerror(errno));
  int failed = fstat(fd, &place->status);
  close(fd);
  return failed ? because("%s cannot be looked at: %s", place->path, strerror(errno)) : path_unfit(place->path);
}

/* ---- as words ---- */

size_t places_write(const struct places *places, char bytes[static PLACES_BYTES_MAX]) {
  char *at = bytes;
  for (size_t i = 0; i < places->count; i++) {
    const struct stat *status = &places->place[i].status;
    at = stpcpy(at, places->place[i].path) + 1;
    at += sprintf(at, "%llu%c%llu%c%u%c%u%c", (unsigned long long)status->st_dev, 0, (unsigned long long)status->st_ino, 0, (unsigned)status->st_uid, 0,
                  (unsigned)status->st_gid, 0);
  }
  return (size_t)(at - bytes);
}

static int read_place(struct place *place, const char **at, const char *end) {
  const char *path = take_word(at, end);
  uint64_t number[4];
  for (int i = 0; i < 4; i++)
    if (take_number(at, end, i < 2 ? UINT64_MAX : UINT32_MAX, &number[i]) < 0) return -1;
  if (!path || !is_tidy(path) || strlen(path) >= sizeof place->path) return -1;
  memcpy(place->path, path, strlen(path) + 1);
  place->status = (struct stat){.st_dev = number[0], .st_ino = number[1], .st_uid = (uid_t)number[2], .st_gid = (gid_t)number[3]};
  return 0;
}

int places_read(struct places *places, const char *bytes, size_t size) {
  const char *at = bytes, *end = bytes + size;
  for (places->count = 0; at < end; places->count++)
    if (places->count > PLACE_ZONES_MAX || read_place(&places->place[places->count], &at, end) < 0) return -1;
  return 0;
}

/* ---- does it fit? ---- */

/* To the directory above. Returns 0 at the root. */
static int go_up(char *path) {
  char *slash = strrchr(path, '/');
  if (!path[1]) return 0;
  slash[slash == path] = 0;
  return 1;
}

static int is_git(const char *program) {
  const char *slash = strrchr(program, '/');
  return strcmp(slash ? slash + 1 : program, "git") == 0;
}

/* The nearest `.git`, as git looks for it. Below a repository a plan for git has something to say of it. */
static const char *repository_unfit(const struct place *place, const char *program) {
  char directory[PATH_MAX], path[PATH_MAX + sizeof "/.git"];
  struct stat status;
  memcpy(directory, place->path, strlen(place->path) + 1);
  for (;;) {
    snprintf(path, sizeof path, "%s/.git", directory);
    if (lstat(path, &status) == 0) break;
    if (errno != ENOENT) return because("%s cannot be looked at: %s", path, strerror(errno));
    if (!go_up(directory)) return NULL;
  }
  if (!S_ISDIR(status.st_mode)) return because("%s is not a directory", path);
  return strcmp(directory, place->path) != 0 && program && is_git(program) ? because("git needs %s", path) : NULL;
}

/* src/plan/virtual-environment.ts makes another plan where there is one. */
static const char *environment_unfit(const struct place *place) {
  static const char *const FILES[] = {".venv/pyvenv.cfg", "venv/pyvenv.cfg", "env/pyvenv.cfg"};
  char path[PATH_MAX + 32];
  for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
    snprintf(path, sizeof path, "%s/%s", place->path, FILES[i]);
    if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) return because("it has %s", FILES[i]);
  }
  return NULL;
}

/* Directories that wait for a look, the first one first: paths below the place. */
struct waiting {
  struct arena arena;
  char **path;
  size_t first, count, sorted;
};

static int wait_for(struct waiting *waiting, const char *directory, const char *name) {
  char *path = arena_join(&waiting->arena, directory, name);
  return path ? append(waiting->path, waiting->count, &path) : -1;
}

static int compare_paths(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int are_siblings(const char *a, const char *b) {
  const char *slash = strrchr(a, '/');
  size_t length = slash ? (size_t)(slash + 1 - a) : 0;
  return strncmp(a, b, length) == 0 && !strchr(b + length, '/');
}

/* Sorts the directories of one parent when the first of them is due: in a large tree, most never are. */
static const char *next_waiting(struct waiting *waiting) {
  char **from = waiting->path + waiting->first;
  if (waiting->first == waiting->sorted) {
    while (waiting->sorted < waiting->count && are_siblings(*from, waiting->path[waiting->sorted])) waiting->sorted++;
    qsort(from, waiting->sorted - waiting->first, sizeof *from, compare_paths);
  }
  return waiting->path[waiting->first++];
}

static const char *in_place(const struct place *place, const char *directory) {
  static char path[2 * PATH_MAX];
  snprintf(path, sizeof path, "%s%s%s", place->path, directory[0] ? "/" : "", directory);
  return path;
}

static const char *entry_is_unfit(const struct place *place, const char *directory, const struct directory_entry *entry, struct waiting *waiting) {
  switch (entry->type) {
    case DT_SOCK:
    case DT_FIFO: return because("it has the socket or FIFO %s/%s", in_place(place, directory), entry->name);
    case DT_UNKNOWN: return because("its file system does not tell what %s/%s is", in_place(place, directory), entry->name);
    case DT_DIR: return wait_for(waiting, directory, entry->name) < 0 ? "too little memory" : NULL;
    default: return NULL;
  }
}

static int is_dots(const char *name) { return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)); }

/* Adds the number of entries to *seen. */
static const char *socket_among(const struct place *place, const char *directory, int fd, struct waiting *waiting, size_t *seen) {
  char room[8 << 10] __attribute__((aligned(64)));
  const char *found = NULL;
  for (long got; !found && (got = sys_getdents(fd, room, sizeof room)) != 0;) {
    if (got < 0) return because("%s cannot be read: %s", in_place(place, directory), strerror(errno));
    for (long at = 0; !found && at < got; at += ((const struct directory_entry *)(room + at))->size) {
      const struct directory_entry *entry = (const struct directory_entry *)(room + at);
      if (is_dots(entry->name)) continue;
      (*seen)++;
      found = entry_is_unfit(place, directory, entry, waiting);
    }
  }
  return found;
}

/* A directory that we may not read is skipped: the command cannot read it either. */
static const char *socket_in(const struct place *place, int root, const char *directory, struct waiting *waiting, size_t *seen) {
  int fd = openat(root, directory[0] ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES || errno == ENOENT ? NULL : because("%s cannot be read: %s", in_place(place, directory), strerror(errno));
  const char *found = socket_among(place, directory, fd, waiting, seen);
  close(fd);
  return found;
}

/* The nearest ones first, those of one directory by name, as src/host/find-sockets.ts: so both stop at the same one. */
static const char *socket_unfit(const struct place *place) {
  struct waiting waiting = {.path = NULL};
  size_t seen = 0;
  int root = open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return because("%s cannot be looked at: %s", place->path, strerror(errno));
  const char *found = socket_in(place, root, "", &waiting, &seen);
  while (!found && waiting.first < waiting.count && seen < PLACE_ENTRIES_MAX) found = socket_in(place, root, next_waiting(&waiting), &waiting, &seen);
  close(root);
  arena_free(&waiting.arena);
  free(waiting.path);
  return found;
}

static int ends_with_step(const char *path, const char *step) {
  size_t length = strlen(path), size = strlen(step);
  return length > size && path[length - size - 1] == '/' && strcmp(path + length - size, step) == 0;
}

/* Everything that the plan was made from or shows: a path in the directory would be another file in another directory. */
static const char *word_unfit(const char *directory, const struct launchfile *plan) {
  for (size_t at = 0; at < launchfile_places(plan); at++) {
    const char *word = plan->bytes + launchfile_offset(plan, at);
    if (word[0] == '/' && is_within(word, directory)) return because("%s is in %s", word, directory);
  }
  return NULL;
}

static const char *around_unfit(const char *directory, const char *path) {
  if (path[0] != '/') return NULL;
  return is_within(directory, path) ? because("%s is in %s", directory, path) : NULL;
}

static const char *device_unfit(const struct place *place, const char *device) {
  uint64_t number;
  if (parse_number(device, UINT64_MAX, &number) == 0 && number == place->status.st_dev) return NULL;
  return "it is on another file system than the one that the plan was made on";
}

/* A condition of one directory names it by its number. */
static int is_of(const struct places *places, const struct place *place, const char *number) {
  uint64_t at;
  return parse_number(number, PLACE_ZONES_MAX, &at) == 0 && place == &places->place[at];
}

static const char *entry_unfit(const struct places *places, const struct place *place, const struct entry *entry) {
  switch (entry->verb) {
    case V_BIND:
    case V_ZONE: return around_unfit(place->path, entry->word[0]);
    case V_APART: return strcmp(entry->word[0], "within") == 0 ? around_unfit(place->path, entry->word[1]) : NULL;
    case V_STEP: return ends_with_step(place->path, entry->word[0]) ? because("%s begins the name of a protected file", entry->word[0]) : NULL;
    case V_DEVICE: return is_of(places, place, entry->word[0]) ? device_unfit(place, entry->word[1]) : NULL;
    case V_QUIET: return is_of(places, place, entry->word[0]) ? socket_unfit(place) : NULL;
    default: return NULL;
  }
}

static const char *place_unfit(const struct places *places, const struct place *place, const struct launchfile *plan) {
  struct entry entry;
  size_t position = 0;
  const char *why = word_unfit(place->path, plan);
  while (!why && launchfile_next(plan, &position, &entry)) why = entry_unfit(places, place, &entry);
  return why;
}

/* One in another: the plan is another one. */
static const char *nesting_unfit(const struct places *places) {
  for (size_t i = 0; i < places->count; i++)
    for (size_t j = 0; j < places->count; j++)
      if (i != j && is_within(places->place[i].path, places->place[j].path)) return because("%s is in %s", places->place[i].path, places->place[j].path);
  return NULL;
}

const char *places_unfit(const struct places *places, const struct launchfile *plan, const char *program) {
  struct entry slots;
  uint64_t count;
  const char *why = NULL;
  if (!launchfile_find(plan, V_SLOTS, &slots) || parse_number(slots.word[0], 1 + PLACE_ZONES_MAX, &count) < 0 || count != places->count)
    return "it is a plan for another number of directories";
  for (size_t i = 0; i < places->count && !why; i++) why = place_unfit(places, &places->place[i], plan);
  if (!why) why = nesting_unfit(places);
  if (!why) why = environment_unfit(&places->place[0]);
  return why ? why : repository_unfit(&places->place[0], program);
}

/* ---- the slots ---- */

#define SEAL_PURPOSE "a plan for the directory"
/* Digits of a plan's hash and of a pool's name: src/plan/hash.ts. */
#define NAME_DIGITS 16

struct fillings {
  const struct places *places;
  char number[24], plan[SHA256_TEXT], pool[SHA256_TEXT];
};

static void add_place(struct sha256 *sum, const struct place *place) {
  char identity[100];
  const struct stat *status = &place->status;
  int length = snprintf(identity, sizeof identity, "%llu:%llu:%u:%u", (unsigned long long)status->st_dev, (unsigned long long)status->st_ino,
                        (unsigned)status->st_uid, (unsigned)status->st_gid);
  sha256_add(sum, "", 1);
  sha256_add(sum, place->path, strlen(place->path) + 1);
  sha256_add(sum, identity, (size_t)length);
}

/* The name of something that was made for these directories, as `nameIn` in src/plan/hash.ts. */
static void name_in(const struct places *places, const char *digest, char name[SHA256_TEXT]) {
  struct sha256 sum;
  sha256_begin(&sum);
  sha256_add(&sum, digest, strlen(digest));
  for (size_t i = 0; i < places->count; i++) add_place(&sum, &places->place[i]);
  sha256_finish(&sum, name);
  name[NAME_DIGITS] = 0;
}

static void make_fillings(const struct places *places, const struct launchfile *plan, struct fillings *fillings) {
  struct entry slots;
  fillings->places = places;
  launchfile_find(plan, V_SLOTS, &slots);
  name_in(places, slots.word[1], fillings->plan);
  name_in(places, slots.word[2], fillings->pool);
}

static const char *number_text(struct fillings *fillings, unsigned long long number) {
  snprintf(fillings->number, sizeof fillings->number, "%llu", number);
  return fillings->number;
}

const struct place *place_of(const struct places *places, const struct entry *zone) {
  size_t at = (size_t)(zone->word[0][1] - '0');
  return zone->word[0][1] >= '0' && at < places->count && strcmp(zone->word[0] + 2, "p") == 0 ? &places->place[at] : NULL;
}

/* The text for a slot, given its number and letter; NULL for an unknown slot. The text is valid until the next call. */
static const char *filling_of(struct fillings *fillings, const char *slot) {
  size_t at = (size_t)(slot[0] - '0');
  if (slot[0] < '0' || at >= fillings->places->count) return NULL;
  const struct place *place = &fillings->places->place[at];
  switch (slot[1]) {
    case 'p': return place->path;
    case 'd': return number_text(fillings, place->status.st_dev);
    case 'i': return number_text(fillings, place->status.st_ino);
    case 'h': return fillings->plan;
    case 'n': return fillings->pool;
    default: return NULL;
  }
}

/* The bytes between two slots are moved whole, and the places in the index with them. */
struct filling_in {
  const struct launchfile *plan;
  size_t from, place; /* what is next: a byte of the plan, a place of its index */
  char *bytes;
  uint32_t *index;
  size_t used, room;
};

static int put(struct filling_in *in, const char *bytes, size_t size) {
  if (size > in->room - in->used) return errno = EFBIG, -1;
  memcpy(in->bytes + in->used, bytes, size);
  in->used += size;
  return 0;
}

static int move_to(struct filling_in *in, size_t end) {
  const struct launchfile *plan = in->plan;
  uint32_t shift = (uint32_t)(in->used - in->from); /* modulo 2^32; a place keeps its verb above its offset */
  if (put(in, plan->bytes + in->from, end - in->from) < 0) return -1;
  for (; in->place < launchfile_places(plan) && launchfile_offset(plan, in->place) <= end; in->place++) in->index[in->place] = plan->index[in->place] + shift;
  in->from = end;
  return 0;
}

/* Bytes of a slot. */
#define SLOT_SIZE 3

static int fill_all(struct filling_in *in, struct fillings *fillings) {
  const char *start = in->plan->bytes, *end = start + in->plan->size, *slot;
  while ((slot = memchr(start + in->from, PLACE_SLOT, (size_t)(end - start) - in->from))) {
    const char *text = end - slot >= SLOT_SIZE ? filling_of(fillings, slot + 1) : NULL;
    if (!text) return errno = EINVAL, -1;
    if (move_to(in, (size_t)(slot - start)) < 0 || put(in, text, strlen(text)) < 0) return -1;
    in->from += SLOT_SIZE;
  }
  return move_to(in, in->plan->size);
}

/* The seal of the plan and its name in this directory decide all bytes of the filled one: its own is made of both. */
static void seal_filled(const struct launchfile *plan, const struct fillings *fillings, char *bytes) {
  unsigned char secret[SECRET_BYTES];
  char text[MAC_TEXT + SHA256_TEXT], seal[MAC_TEXT];
  struct entry check;
  if (!launchfile_find(plan, V_CHECK, &check) || strlen(check.word[0]) != MAC_TEXT - 1) return;
  int length = snprintf(text, sizeof text, "%s %s", check.word[0], fillings->pool);
  seal_for(secret_read(secret) == 0 ? secret : NULL, SEAL_PURPOSE, text, (size_t)length, seal);
  memcpy(bytes + (check.word[0] - plan->bytes), seal, MAC_TEXT); /* the first record: no slot is before it */
}

static size_t room_for(const struct places *places, const struct launchfile *plan) {
  size_t slots = 0, longest = SHA256_TEXT;
  for (size_t i = 0; i < places->count; i++)
    if (strlen(places->place[i].path) > longest) longest = strlen(places->place[i].path);
  const char *end = plan->bytes + plan->size;
  for (const char *at = plan->bytes; (at = memchr(at, PLACE_SLOT, (size_t)(end - at))); at++) slots++;
  return plan->size + slots * longest;
}

int places_fill(const struct places *places, const struct launchfile *plan, struct launchfile *filled) {
  struct fillings fillings;
  make_fillings(places, plan, &fillings);
  struct filling_in in = {.plan = plan, .room = room_for(places, plan)};
  if (in.room > LAUNCHFILE_MAX) return errno = EFBIG, -1;
  in.bytes = malloc(in.room);
  in.index = malloc(launchfile_places(plan) * sizeof *in.index);
  if (!in.bytes || !in.index || fill_all(&in, &fillings) < 0) return free(in.bytes), free(in.index), -1;
  seal_filled(plan, &fillings, in.bytes);
  *filled = (struct launchfile){.bytes = in.bytes, .size = in.used, .index = in.index, .count = plan->count, .range = plan->range};
  return 0;
}
