#include "lib/walk.h"

#include "lib/look.h"
#include "lib/report-failure.h"
#include "lib/repository.h"
#include "lib/syscalls.h"
#include "lib/tree-size.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

enum context {
  IN_TREE,  /* anything may be here */
  IN_GIT,   /* a git directory that has been found by its name */
  IN_KEPT,  /* in `modules` or `worktrees` of a git directory */
  IN_PLAIN, /* among objects and the like: files are looked at, repositories are not looked for */
  NOWHERE,
};

struct pending {
  const char *name; /* in the directory `parent`; where there is none, a path of the zone */
  int parent;       /* index of a pending, -1 = none */
  enum context context;
  int owner; /* index of a find */
  int known; /* index in walk->known, -1 = none */
  int is_named; /* an entry of a system: looked at each time */
};

/* ---- what is found ---- */

static int add_find(struct walk *walk, const struct find *find) { return append(walk->find, walk->count, find); }

static int add_pending(struct walk *walk, const struct pending *pending) {
  size_t records = walk->pending_count;
  struct tree_directory record = {.context = (uint8_t)pending->context, .is_named = (uint8_t)pending->is_named};
  if (walk->records && append(walk->record, records, &record) < 0) return -1;
  return append(walk->pending, walk->pending_count, pending);
}

/* The path of a directory that has been visited, from its end. -1: it is the part of the path that fits. */
static int locate_parent(struct walk *walk, int parent) {
  enum { STEPS_MAX = PATH_MAX / 2 }; /* more have no room in a path */
  int step[STEPS_MAX], steps = 0, inner = -STEPS_MAX;
  walk->parent_length = 0, walk->above = 0;
  walk->at[0] = 0;
  for (int i = parent; i >= 0; i = walk->pending[i].parent) inner++;
  for (int i = parent; i >= 0; i = walk->pending[i].parent)
    if (inner-- <= 0) step[steps++] = i;
  while (steps-- > 0)
    if (tree_add_step(walk->at, &walk->parent_length, walk->pending[step[steps]].name) < 0) return -1;
  walk->above = parent + 1;
  return 0;
}

/* Writes the path of a pending to `walk->at`. Those of one directory are next to each other. -1 with ENAMETOOLONG: it is the part that fits. */
static int locate(struct walk *walk, size_t index) {
  int parent = walk->pending[index].parent;
  if (walk->above != parent + 1 && locate_parent(walk, parent) < 0) return -1;
  size_t length = walk->parent_length;
  walk->at[length] = 0;
  return tree_add_step(walk->at, &length, walk->pending[index].name);
}

static struct find find_of(enum find_kind kind, const char *path, const struct stat *status) {
  return (struct find){kind, status->st_mode & S_IFMT, {status->st_dev, status->st_ino}, path, -1};
}

/* ---- for the index ---- */

static int add_name(struct walk *walk, const char *name, uint32_t *at) {
  size_t size = strlen(name) + 1;
  if (walk->names_size + size > UINT32_MAX) return errno = E2BIG, -1;
  char *names = grow_bytes(walk->names, walk->names_size + size, &walk->names_room);
  if (!names) return -1;
  walk->names = names;
  *at = (uint32_t)walk->names_size;
  memcpy(walk->names + walk->names_size, name, size);
  walk->names_size += size;
  return 0;
}

/* Of the pending at `index`, whose files are added one after the other. */
static int add_file(struct walk *walk, int index, const char *name, struct tree_file file) {
  if (!walk->records || !walk->for_set_id) return 0;
  if (add_name(walk, name, &file.name) < 0) return -1;
  walk->record[index].files++;
  return append(walk->file, walk->files, &file);
}

static int checks_files(const struct walk *walk) { return walk->for_set_id || walk->for_linked || walk->for_links || walk->wanted_count > 0 || walk->hide || walk->size; }

/* An overlay of two file systems (without xino) reports the numbers of the lower one: a file that was copied up differs by name. */
static int is_loose(const struct walk *walk, int directory) {
  struct statfs file_system;
  struct stat status;
  if (walk->wanted_count == 0 || (fstatfs(directory, &file_system) == 0 && file_system.f_type != OVERLAYFS_SUPER_MAGIC)) return 0;
  if (fstat(directory, &status) < 0) return 1;
  for (size_t i = 0; i < walk->wanted_count; i++)
    if (walk->wanted[i].dev != status.st_dev && major(walk->wanted[i].dev) == 0) return 1;
  return 0;
}

static const struct identity *wanted_inode(const struct walk *walk, ino_t ino) {
  for (size_t i = 0; i < walk->wanted_count; i++)
    if (walk->wanted[i].ino == ino) return &walk->wanted[i];
  return NULL;
}

/* A directory that is being read; its path is `walk->at`. */
struct listing {
  struct walk *walk;
  struct pending place;
  int index; /* of it */
  int fd;
  unsigned parts, systems;
  int is_linked;
  struct tree_inodes inodes;
  uint32_t known_at;   /* the next one that is expected among the directories of the known listing */
  size_t entries;
  int folds; /* case; -1 = no name in it has shown it */
  int is_loose; /* names of a wanted file may have other numbers here */
  struct unlocked unlocked;
};

/* 1, or 0: it is gone, or out of the command's reach, too. -1 with errno: it cannot be looked at. */
static int status_of(struct listing *listing, const char *name, struct stat *status) {
  int done = fstatat(listing->fd, name, status, AT_SYMLINK_NOFOLLOW);
  for (int tries = LOOK_TRIES; done < 0 && errno == EACCES && tries > 0; tries--) {
    unlock_open(&listing->unlocked, listing->fd, 0500);
    done = fstatat(listing->fd, name, status, AT_SYMLINK_NOFOLLOW);
  }
  if (done == 0) return 1;
  int error = errno;
  if (error == ENOENT || (error == EACCES && look_is_closed(listing->fd))) return 0;
  return errno = error, -1;
}

/* The working directory is the file's own: the shortest way for a call that takes no descriptor. */
static int has_capabilities(const char *name) { return walk_has_capabilities(lgetxattr(name, "security.capability", NULL, 0)); }

static int on_file(struct listing *listing, const char *name, ino_t ino) {
  struct walk *walk = listing->walk;
  const struct identity *wanted = wanted_inode(walk, ino);
  struct stat status;
  int for_linked = walk->for_linked || listing->is_loose;
  if (!wanted && !walk->for_set_id && !for_linked) return 0;
  int found = status_of(listing, name, &status);
  if (found <= 0 || !S_ISREG(status.st_mode)) return found < 0 ? -1 : 0;
  listing->is_linked |= status.st_nlink > 1;
  int is_twin = (wanted && wanted->dev == status.st_dev) || (for_linked && status.st_nlink > 1);
  int is_set_id = walk->for_set_id && ((status.st_mode & (S_ISUID | S_ISGID)) || has_capabilities(name));
  if (add_file(walk, listing->index, name, is_set_id ? (struct tree_file){0} : tree_file_of(&status.st_ctim, &walk->begun)) < 0) return -1;
  if (!is_twin && !is_set_id) return 0;
  struct find find = find_of(is_twin ? FIND_TWIN : FIND_SET_ID, arena_join(&walk->arena, walk->at, name), &status);
  return find.path ? add_find(walk, &find) : -1;
}

/* ---- links ---- */

static int depth_of(const char *path) {
  int depth = path[0] != 0;
  for (const char *at = path; *at; at++) depth += *at == '/';
  return depth;
}

/* A ".." behind a name may go up from anywhere: that name can be a link, too. */
static int leads_out(const char *text, int depth) {
  int is_named = 0;
  if (text[0] == '/') return 1;
  for (size_t length; *text; text += length + (text[length] == '/')) {
    length = strcspn(text, "/");
    if (length == 0 || (length == 1 && text[0] == '.')) continue;
    if (length != 2 || strncmp(text, "..", 2) != 0) is_named = 1;
    else if (is_named || depth-- == 0) return 1;
  }
  return 0;
}

static int on_link(struct listing *listing, const char *name) {
  struct walk *walk = listing->walk;
  char text[PATH_MAX];
  struct stat status;
  int found = walk->for_links ? status_of(listing, name, &status) : 0; /* opens the directory where its user has closed it */
  if (found <= 0 || !S_ISLNK(status.st_mode)) return found < 0 ? -1 : 0;
  ssize_t length = readlinkat(listing->fd, name, text, sizeof text - 1);
  if (length < 0) return errno == ENOENT || errno == EINVAL ? 0 : -1;
  text[length] = 0;
  if (!leads_out(text, depth_of(walk->at) - depth_of(walk->start ? walk->start : ""))) return 0;
  struct find find = find_of(FIND_LINK, arena_join(&walk->arena, walk->at, name), &status);
  return find.path ? add_find(walk, &find) : -1;
}

/* The context of the directory `name` of a git directory. */
static enum context context_in_git(const struct walk *walk, const char *name) {
  if (strcmp(name, "modules") == 0 || strcmp(name, "worktrees") == 0) return IN_KEPT;
  return checks_files(walk) ? IN_PLAIN : NOWHERE;
}

/* ---- a directory ---- */

/* A directory of the known listing; names come in the same order again, but for those that are new or gone. */
static int known_below(struct listing *listing, const char *name) {
  int above = listing->place.known, found = above < 0 ? -1 : tree_find(listing->walk->known, (uint32_t)above, listing->known_at, name);
  if (found >= 0) listing->known_at = (uint32_t)found - listing->walk->known->directory[above].first + 1;
  return found;
}

static int known_named(const struct listing *listing, const char *name) {
  return listing->place.known < 0 ? -1 : tree_find_named(listing->walk->known, (uint32_t)listing->place.known, name);
}

static int add_below(struct listing *listing, const char *name, struct pending place) {
  place.name = arena_copy(&listing->walk->arena, name, strlen(name));
  place.parent = listing->index;
  place.known = place.is_named ? known_named(listing, name) : known_below(listing, name);
  return place.name ? add_pending(listing->walk, &place) : -1;
}

static int on_named(struct listing *listing, const struct repository_system *system) {
  struct walk *walk = listing->walk;
  struct stat status;
  int found = status_of(listing, system->name, &status);
  if (found <= 0) return found;
  if (!walk->for_empty && !repository_uses(system, &status)) return 0;
  struct find find = find_of(FIND_NAMED, arena_join(&walk->arena, walk->at, system->name), &status);
  if (!find.path || add_find(walk, &find) < 0) return -1;
  /* Directories of Mercurial and Jujutsu can hold one of git, which they start git in. */
  struct pending place = {.context = system->kept[0] ? IN_GIT : IN_TREE, .owner = (int)walk->count - 1, .is_named = 1};
  return S_ISDIR(status.st_mode) ? add_below(listing, system->name, place) : 0;
}

static enum context context_of(const struct listing *listing, const char *name) {
  switch (listing->place.context) {
    case IN_GIT: return context_in_git(listing->walk, name);
    case IN_TREE:
    case IN_KEPT:
    case IN_PLAIN:
    case NOWHERE: break;
  }
  return listing->place.context;
}

static int on_directory(struct listing *listing, const char *name) {
  enum context context = context_of(listing, name);
  return context == NOWHERE ? 0 : add_below(listing, name, (struct pending){.context = context, .owner = listing->place.owner});
}

/* The type as getdents64 has it; 0 = it is gone. -1 with errno. */
static int type_of(struct listing *listing, const char *name, unsigned char known) {
  struct stat status;
  if (known != DT_UNKNOWN) return known;
  int found = status_of(listing, name, &status);
  return found <= 0 ? found : (int)IFTODT(status.st_mode);
}

/* The first name with a letter tells; one without a letter is none that anybody looks for. */
static int note_case(struct listing *listing, const char *name) {
  char other[NAME_MAX + 1];
  struct stat status, folded;
  if (!listing->walk->for_git || listing->folds >= 0 || !look_other_case(name, other)) return 0;
  int found = status_of(listing, name, &status), again = found > 0 ? status_of(listing, other, &folded) : 0;
  if (found <= 0 || again < 0) return found < 0 || again < 0 ? -1 : 0;
  listing->folds = again && folded.st_ino == status.st_ino;
  return listing->folds && listing->walk->for_names ? (errno = EOPNOTSUPP, -1) : 0;
}

/* Names are compared first: a look at each entry would cost more. */
static int on_hidden(struct listing *listing, const char *name) {
  struct walk *walk = listing->walk;
  struct stat status;
  if (!hide_matches(walk->hide, walk->at, name, 1)) return 0;
  int found = status_of(listing, name, &status);
  if (found <= 0 || !hide_matches(walk->hide, walk->at, name, S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode))) return found < 0 ? -1 : 0;
  if (walk->records) walk->record[listing->index].hides = 1;
  struct find find = find_of(FIND_HIDDEN, arena_join(&walk->arena, walk->at, name), &status);
  return find.path ? add_find(walk, &find) : -1;
}

/* By the rules of its file system. */
static int look_up_names(struct listing *listing) {
  int parts = repository_parts_in(listing->fd);
  if (parts < 0) return -1;
  listing->parts = (unsigned)parts;
  for (int i = 0; i < REPOSITORY_SYSTEMS && listing->place.context == IN_TREE; i++)
    if (on_named(listing, &REPOSITORY_SYSTEM[i]) < 0) return -1;
  return 0;
}

/* 1 = it is to be looked at further; 0 = it is gone, or is added up by another walk. */
static int on_size(struct listing *listing, const char *name) {
  struct stat status;
  int found = status_of(listing, name, &status);
  if (found <= 0 || tree_size_is_apart(listing->walk->size, &status)) return found < 0 ? -1 : 0;
  return tree_size_add(listing->walk->size, &status) < 0 ? -1 : 1;
}

static int on_entry(struct listing *listing, const struct directory_entry *entry) {
  const char *name = entry->name;
  struct walk *walk = listing->walk;
  if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) return 0;
  listing->entries++;
  if (++walk->entries > walk->entries_max && walk->entries_max) return errno = E2BIG, -1;
  if (note_case(listing, name) < 0 || (walk->hide && on_hidden(listing, name) < 0)) return -1;
  int is_counted = walk->size ? on_size(listing, name) : 1;
  if (is_counted <= 0) return is_counted;
  if (entry->type == DT_REG || entry->type == DT_UNKNOWN) tree_add_inode(&listing->inodes, entry->ino);
  const struct repository_system *system = walk->for_git && listing->place.context == IN_TREE ? repository_system(name) : NULL;
  if (system) return listing->systems |= 1u << (system - REPOSITORY_SYSTEM), listing->folds > 0 ? 0 : on_named(listing, system);
  listing->parts |= repository_part(name);
  int type = type_of(listing, name, entry->type);
  if (type == DT_DIR) return on_directory(listing, name);
  if (type == DT_LNK) return on_link(listing, name);
  return type == DT_REG ? on_file(listing, name, entry->ino) : type < 0 ? -1 : 0;
}

/* Made on purpose, a directory can hold a million names. */
#define LONGEST_DIRECTORY_NS 10000000ull

static int takes_too_long(const struct walk *walk) { return walk->until_ns && !walk->size && now_ns() > walk->until_ns + LONGEST_DIRECTORY_NS; }

static int read_entries(struct listing *listing) {
  static char room[64 << 10] __attribute__((aligned(64)));
  for (;;) {
    long got = sys_getdents(listing->fd, room, sizeof room);
    if (got == 0 || takes_too_long(listing->walk)) return 0;
    if (got < 0) return errno == ENOENT ? 0 : -1; /* removed meanwhile */
    for (long at = 0; at < got;) {
      const struct directory_entry *entry = (const struct directory_entry *)(room + at);
      if (on_entry(listing, entry) < 0) return -1;
      at += entry->size;
    }
  }
}

/* It turned out to be a repository after its directories were noted. */
static int on_repository(struct listing *listing, size_t first) {
  struct walk *walk = listing->walk;
  struct stat status;
  if (fstat(listing->fd, &status) < 0) return -1;
  struct find find = find_of(listing->place.context == IN_KEPT ? FIND_KEPT : FIND_BARE, arena_copy(&walk->arena, walk->at, strlen(walk->at)), &status);
  if (find.kind == FIND_KEPT) find.owner = listing->place.owner;
  if (!find.path || add_find(walk, &find) < 0) return -1;
  for (size_t i = first; i < walk->pending_count; i++) {
    struct pending *below = &walk->pending[i];
    const char *name = below->name;
    enum context context = below->context == IN_GIT ? IN_GIT : context_in_git(walk, name);
    /* A directory that holds more than a repository's files is looked through, except for its objects. */
    if (context != IN_KEPT && below->context == IN_TREE && strcmp(name, "objects") != 0) continue;
    if (context != IN_GIT) below->owner = (int)walk->count - 1;
    below->context = context;
  }
  return 0;
}

static int on_too_deep(struct walk *walk) {
  struct find find = {FIND_TOO_DEEP, S_IFDIR, {0, 0}, arena_copy(&walk->arena, walk->at, strlen(walk->at)), -1};
  return find.path ? add_find(walk, &find) : -1;
}

static int is_repository(enum context context, unsigned parts) { return context == IN_TREE ? repository_is(parts) : context == IN_KEPT && (parts & REPOSITORY_HEAD); }

/* After the last entry. */
static int end_place(struct listing *listing, size_t first, const struct tree_state *state) {
  struct walk *walk = listing->walk;
  if (walk->records) {
    struct tree_directory *record = &walk->record[listing->index];
    record->state = *state;
    record->first = (uint32_t)first;
    record->count = (uint32_t)(walk->pending_count - first);
    record->entries = (uint32_t)listing->entries;
    record->inodes = listing->inodes;
    record->context = (uint8_t)listing->place.context;
    record->parts = (uint8_t)listing->parts;
    record->systems = (uint8_t)listing->systems;
    record->is_linked = (uint8_t)listing->is_linked;
  }
  return walk->for_git && is_repository(listing->place.context, listing->parts) ? on_repository(listing, first) : 0;
}

static void begin_place(const struct listing *listing) {
  if (listing->walk->records) listing->walk->record[listing->index].first_file = (uint32_t)listing->walk->files;
}

/* A watcher's word is about a directory at the place that it had: where this one has changed, another one may have that place now. */
static void doubt_below(struct walk *walk, int known) {
  const struct tree_directory *directory = known >= 0 && walk->same ? &walk->known->directory[known] : NULL;
  if (directory) memset(walk->same + directory->first, 0, directory->count);
}

static int read_place(struct listing *listing) {
  struct walk *walk = listing->walk;
  size_t first = walk->pending_count;
  doubt_below(walk, listing->place.known);
  struct tree_state state = walk->mount ? tree_state_of(listing->fd, walk->device, walk->mount, &walk->begun) : (struct tree_state){0}; /* before its entries */
  begin_place(listing);
  listing->is_loose = is_loose(walk, listing->fd);
  walk->listed++;
  if (walk->size && tree_size_open(walk->size, listing->fd) < 0) return -1;
  if (walk->for_set_id && fchdir(listing->fd) < 0) return -1;
  if (read_entries(listing) < 0) return -1;
  if (listing->folds > 0 && look_up_names(listing) < 0) return -1;
  if (listing->folds > 0) state.inode = 0; /* its names do not say what is found by them */
  return end_place(listing, first, &state);
}

/* ---- a directory that has not changed ---- */

/* An index that can say what this walk looks for. */
static int can_be_known(const struct walk *walk) {
  if (!walk->known || !walk->known->bytes || walk->start || walk->for_linked || walk->for_links || walk->size) return 0;
  if (walk->hide && walk->known->hides != hide_sum(walk->hide)) return 0;
  if (walk->for_git && !walk->known->has_systems) return 0;
  return !walk->for_set_id || walk->known->has_files;
}

/* Then it is listed. */
static int may_hold_wanted(const struct walk *walk, const struct tree_directory *known) {
  for (size_t i = 0; i < walk->wanted_count; i++)
    if (tree_may_hold(&known->inodes, walk->wanted[i].ino)) return 1;
  return 0;
}

static const struct tree_directory *find_known(const struct walk *walk, const struct pending *place) {
  const struct tree_directory *known = place->known < 0 ? NULL : &walk->known->directory[place->known];
  return known && known->context == place->context && !(walk->hide && known->hides) && !may_hold_wanted(walk, known) ? known : NULL;
}

static int is_same_with_files(const struct walk *walk, const struct tree_directory *known) { return walk->same && walk->same[known - walk->known->directory]; }

/* Entries of a system, files, and what makes a repository, are looked at in the directory itself. */
static int must_open(const struct walk *walk, const struct tree_directory *known) {
  return (walk->for_git && (known->systems != 0 || is_repository(known->context, known->parts))) || (walk->for_set_id && known->files > 0 && !is_same_with_files(walk, known));
}

static int count_entries(struct walk *walk, uint32_t more) {
  walk->entries += more;
  return walk->entries_max && walk->entries > walk->entries_max ? (errno = E2BIG, -1) : 0;
}

static int add_known(struct listing *listing, uint32_t at) {
  struct walk *walk = listing->walk;
  const struct tree_index *known = walk->known;
  const char *name = known->names + known->directory[at].name;
  enum context context = known->directory[at].is_named && walk->for_git ? NOWHERE : context_of(listing, name);
  if (context == NOWHERE) return 0; /* an entry of a system has been looked at */
  if (walk->quiet && walk->quiet[at] && context == (enum context)known->directory[at].context) return count_entries(walk, walk->quiet[at] - 1);
  return add_pending(walk, &(struct pending){.name = name, .parent = listing->index, .context = context, .owner = listing->place.owner, .known = (int)at});
}

static int replay_files(struct listing *listing, const struct tree_directory *same) {
  struct walk *walk = listing->walk;
  int changed = 0;
  for (uint32_t i = same->first_file; i < same->first_file + same->files; i++) {
    const struct tree_file *file = &walk->known->file[i];
    const char *name = walk->known->names + file->name;
    int is_same = is_same_with_files(walk, same) || tree_is_same_file(listing->fd, name, file);
    if (!is_same && !changed++ && fchdir(listing->fd) < 0) return -1;
    if ((is_same ? add_file(walk, listing->index, name, *file) : on_file(listing, name, 0)) < 0) return -1;
  }
  walk->listed += changed > 0;
  return 0;
}

/* As read_place, by the names of its last listing. */
static int replay(struct listing *listing, const struct tree_directory *same) {
  struct walk *walk = listing->walk;
  size_t first = walk->pending_count;
  begin_place(listing);
  listing->parts = same->parts, listing->systems = same->systems, listing->entries = same->entries, listing->inodes = same->inodes, listing->is_linked = same->is_linked;
  if (count_entries(walk, same->entries) < 0) return -1;
  for (int i = 0; i < REPOSITORY_SYSTEMS && walk->for_git; i++)
    if ((same->systems >> i & 1) && on_named(listing, &REPOSITORY_SYSTEM[i]) < 0) return -1;
  if (walk->for_set_id && replay_files(listing, same) < 0) return -1;
  for (uint32_t i = same->first; i < same->first + same->count; i++)
    if (add_known(listing, i) < 0) return -1;
  return end_place(listing, first, &same->state);
}

static int visit(struct walk *walk, size_t index) {
  struct listing listing = {.walk = walk, .place = walk->pending[index], .index = (int)index, .fd = -1, .folds = -1};
  const struct tree_directory *known = find_known(walk, &listing.place);
  int must = !known || must_open(walk, known);
  if (!must && is_same_with_files(walk, known)) return replay(&listing, known);
  if (locate(walk, index) < 0) return on_too_deep(walk);
  if (!must && !walk->same && tree_is_same(walk->zone, walk->at[0] ? walk->at : ".", walk->known, &known->state)) return replay(&listing, known);
  enum look look = look_into(walk->zone, walk->at, &listing.unlocked, &listing.fd);
  int is_same = look == LOOK_FOUND && known && tree_is_same(listing.fd, "", walk->known, &known->state);
  /* Gone, or exchanged for a link: no directory that was listed. */
  int done = look == LOOK_FOUND ? (is_same ? replay(&listing, known) : read_place(&listing)) : look != LOOK_FAILED ? 0 : errno == ENAMETOOLONG ? on_too_deep(walk) : -1;
  int error = errno;
  if (listing.fd >= 0) close(listing.fd);
  unlock_end(&listing.unlocked);
  errno = error;
  return done;
}

/* Nothing else in it matters: that saves reading it. */
static int visit_git(struct walk *walk, size_t index) {
  static const char *const KEPT[] = {"modules", "worktrees"};
  const struct pending place = walk->pending[index];
  doubt_below(walk, place.known);
  if (walk->records) walk->record[index].first = (uint32_t)walk->pending_count, walk->record[index].count = 2;
  for (int i = 0; i < 2; i++) {
    int known = place.known < 0 ? -1 : tree_find(walk->known, (uint32_t)place.known, 0, KEPT[i]);
    if (add_pending(walk, &(struct pending){.name = KEPT[i], .parent = (int)index, .context = IN_KEPT, .owner = place.owner, .known = known}) < 0) return -1;
  }
  return 0;
}

static int visit_next(struct walk *walk, size_t index) {
  enum context context = walk->pending[index].context;
  if (checks_files(walk)) return context == NOWHERE ? 0 : visit(walk, index);
  switch (context) {
    case IN_GIT: return visit_git(walk, index);
    case IN_TREE:
    case IN_KEPT:
    case IN_PLAIN: return visit(walk, index);
    case NOWHERE: return 0;
  }
  return 0;
}

static int walk_pending(struct walk *walk) {
  while (walk->next < walk->pending_count) {
    if (walk->until_ns && now_ns() > walk->until_ns) return 1;
    if (visit_next(walk, walk->next++) < 0) return -1;
  }
  return 0;
}

static int is_stale(const struct walk *walk, size_t changed) { return changed > walk->known->directories / STALE_SHARE; }

/* The walk looks only for `modules` and `worktrees` in a named git directory: it lists none of it, and has no state of it. */
static int is_listed(const struct tree_directory *known) { return known->state.inode || (known->context != IN_GIT && known->context != IN_KEPT); }

static void check_known(struct walk *walk) {
  size_t changed = 0;
  walk->same = tree_check(walk->known, walk->zone, walk->for_set_id);
  for (uint32_t i = 0; walk->same && i < walk->known->directories; i++) changed += !walk->same[i] && is_listed(&walk->known->directory[i]);
  if (walk->same && walk->records == 1 && !is_stale(walk, changed)) walk->records = 0;
}

static int is_busy(const struct walk *walk, const struct tree_directory *known) {
  return !is_same_with_files(walk, known) || must_open(walk, known) || (walk->hide && known->hides) || may_hold_wanted(walk, known);
}

/* From the last one: a directory comes before those in it. One in another context than what it is in can be in yet another one by now. */
static void find_quiet(struct walk *walk) {
  const struct tree_directory *directory = walk->known->directory;
  walk->quiet = calloc(walk->known->directories, sizeof *walk->quiet);
  for (uint32_t at = walk->known->directories; walk->quiet && at-- > 0;) {
    uint32_t entries = is_busy(walk, &directory[at]) ? 0 : 1 + directory[at].entries;
    for (uint32_t i = directory[at].first; entries && i < directory[at].first + directory[at].count; i++)
      entries = walk->quiet[i] && directory[i].context == directory[at].context ? entries + walk->quiet[i] - 1 : 0;
    walk->quiet[at] = entries;
  }
}

static int begin(struct walk *walk) {
  if (walk->pending_count > 0) return 0;
  if (walk->records && !tree_is_trusted(walk->zone, &walk->device, &walk->mount)) walk->mount = 0;
  if (clock_gettime(CLOCK_REALTIME, &walk->begun) < 0) return -1;
  int is_known = can_be_known(walk);
  if (is_known && !walk->until_ns && !walk->same) check_known(walk);
  if (is_known && walk->same && !walk->records) find_quiet(walk);
  return add_pending(walk, &(struct pending){.name = walk->start ? walk->start : "", .parent = -1, .context = walk->start ? IN_PLAIN : IN_TREE, .owner = -1, .known = is_known ? 0 : -1});
}

int walk_some(struct walk *walk, uint64_t until_ns) {
  int before = walk->for_set_id ? open(".", O_PATH | O_CLOEXEC) : -1;
  walk->until_ns = until_ns;
  int done = begin(walk);
  if (done == 0) done = walk_pending(walk);
  int error = errno;
  if (before >= 0 && fchdir(before) < 0) done = -1, error = errno;
  if (before >= 0) close(before);
  errno = error;
  return done;
}

/* A directory that has changed may hold many that are new. */
int walk_zone(struct walk *walk) {
  struct walk again = *walk;
  int done = walk_some(walk, 0);
  if (done < 0 || walk->records == again.records || !is_stale(walk, walk->listed)) return done;
  again.records = 2;
  walk_free(walk);
  *walk = again;
  return walk_some(walk, 0);
}

/* ---- the index ---- */

static int name_records(struct walk *walk) {
  for (size_t i = 0; i < walk->pending_count; i++)
    if (add_name(walk, walk->pending[i].name, &walk->record[i].name) < 0) return -1;
  return 0;
}

static int make_index(struct walk *walk, struct tree_index *index) {
  if (!walk->records || !walk->mount || name_records(walk) < 0) return -1;
  return tree_make(index, &(struct tree_index){.directory = walk->record, .file = walk->file, .names = walk->names, .directories = (uint32_t)walk->pending_count,
                                               .files = (uint32_t)walk->files, .names_size = (uint32_t)walk->names_size, .has_files = (uint32_t)walk->for_set_id, .has_systems = (uint32_t)walk->for_git,
                                               .hides = hide_sum(walk->hide), .device = walk->device, .mount = walk->mount});
}

void walk_take_index(struct walk *walk, struct tree_index *index) {
  struct tree_index made;
  if (make_index(walk, &made) < 0) made = (struct tree_index){0};
  tree_free(index); /* the names of what was known are in it */
  *index = made;
}

void walk_free(struct walk *walk) {
  free(walk->find);
  free(walk->pending);
  free(walk->record);
  free(walk->file);
  free(walk->names);
  free(walk->same);
  free(walk->quiet);
  arena_free(&walk->arena);
  *walk = (struct walk){.zone = -1};
}
