#include "tools/layer-protected.h"

#include "lib/guard.h"
#include "lib/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is protected ---- */

static int by_place(const void *a, const void *b) {
  const struct closed_place *first = a, *second = b;
  if (first->zone != second->zone) return first->zone < second->zone ? -1 : 1;
  size_t shorter = first->length < second->length ? first->length : second->length;
  int order = memcmp(first->path, second->path, shorter);
  return order ? order : first->length < second->length ? -1 : first->length > second->length;
}

int protection_close(struct protection *protection, size_t zone, const char *path) {
  char *copy = strdup(path);
  struct closed_place place = {zone, copy, strlen(path)};
  if (copy && append(protection->closed, protection->count, &place) == 0) return 0;
  free(copy);
  return -1;
}

int protection_end(struct protection *protection) {
  if (!(protection->has_length = calloc(1, PATH_MAX + 1))) return -1;
  for (size_t i = 0; i < protection->count; i++) protection->has_length[protection->closed[i].length] = 1;
  if (protection->count) qsort(protection->closed, protection->count, sizeof *protection->closed, by_place);
  return 0;
}

/* The guard covers and watches these paths in writable zones. A directory that it only keeps in its place is not closed. */
static int close_zone(struct protection *protection, size_t number, const struct guard_zone *zone) {
  int done = 0;
  for (size_t i = 0; i < zone->covers && done == 0; i++)
    if (!zone->cover[i].writable) done = protection_close(protection, number, zone->cover[i].path);
  for (size_t i = 0; i < zone->names && done == 0; i++) done = protection_close(protection, number, zone->name[i].path);
  return done;
}

static int close_all(struct protection *protection, const struct layer *layer) {
  static struct guard guard;
  int is_known = guard_prepare_layers(&guard, &layer->record) == 0, done = 0;
  for (size_t i = 0; i < (is_known ? guard.zones : layer->zones) && done == 0; i++)
    done = is_known ? close_zone(protection, i, &guard.zone[i]) : protection_close(protection, i, ".");
  guard_close(&guard);
  return done;
}

/* The entries of a zone follow it. */
static int read_record(struct protection *protection, const struct launchfile *record) {
  struct entry entry;
  size_t position = 0;
  while (launchfile_next(record, &position, &entry)) {
    struct protected_zone *last = protection->zones ? &protection->zone[protection->zones - 1] : NULL;
    if (entry.verb == V_PROTECT && last && append(last->name, last->names, &entry.word[2]) < 0) return -1;
    if (entry.verb == V_GIT && last) last->open = entry.word[2];
    if (is_layered(&entry) && append(protection->zone, protection->zones, &(struct protected_zone){0}) < 0) return -1;
  }
  return 0;
}

int protection_read(struct protection *protection, const struct layer *layer) {
  return read_record(protection, &layer->record) < 0 || close_all(protection, layer) < 0 ? -1 : protection_end(protection);
}

/* ---- one change ---- */

/* A change of its entry, which exchanges or makes or removes it; not one inside of it. */
static int is_replacing(const struct listed *item) { return is_making(item) || item->kind == DELETED || item->kind == SYMLINK; }

/* The same, or one of its mode: who else may write in a git directory, and whether we can look into it. */
static int is_of_entry(const struct listed *item) { return is_replacing(item) || item->kind == MODE; }

/* Paths below such a name are not in the list: a link leads to them, a renamed directory brings them along. */
static int leads_on(const struct listed *item) { return S_ISLNK(item->now) || item->kind == RENAMED; }

/* Whether a change at `path` is one to what is at `place`. */
static int reaches(const struct listed *item, const char *path, const char *place) {
  return is_at_or_below(path, place) || (leads_on(item) && is_at_or_below(place, path));
}

static int is_open(const char *open, const char *name) { return guard_is_open(&(struct guard_zone){.open = open}, name); }

static int reaches_closed(const struct listed *item, const char *path, const char *const *closed, const char *open) {
  for (; *closed; closed++)
    if (!is_open(open, *closed) && reaches(item, path, *closed)) return 1;
  return 0;
}

/* Where the word that begins at `at` ends. */
static size_t word_length(const char *at) { return strcspn(at, "/"); }

static const char *next_word(const char *at) {
  at += word_length(at);
  return at + (*at == '/');
}

static int is_word(const char *at, const char *word) { return word_length(at) == strlen(word) && strncmp(at, word, strlen(word)) == 0; }

/* A change at or below such a place, or one that exchanges what is above it. */
static int is_closed_on_host(const struct protection *protection, const struct listed *item) {
  struct closed_place wanted = {item->zone, ".", 1};
  if (!protection->count) return 0;
  if (bsearch(&wanted, protection->closed, protection->count, sizeof wanted, by_place)) return 1;
  wanted.path = item->path;
  for (const char *at = item->path; *at && wanted.length <= PATH_MAX; at = next_word(at)) {
    wanted.length = (size_t)(at - item->path) + word_length(at);
    if (wanted.length <= PATH_MAX && protection->has_length[wanted.length] && bsearch(&wanted, protection->closed, protection->count, sizeof wanted, by_place)) return 1;
  }
  for (size_t i = 0; leads_on(item) && i < protection->count; i++)
    if (protection->closed[i].zone == item->zone && is_at_or_below(protection->closed[i].path, item->path)) return 1;
  return 0;
}

/* ---- repositories ---- */

/* A path that goes through more of them is left alone whatever it is: nothing but an attack has it. */
#define ROOTS_MAX 64

static const char *kept_holder(const struct repository_system *system, const char *rest) {
  for (const char *const *name = system->kept; *name; name++)
    if (is_word(rest, *name)) return *name;
  return NULL;
}

/* The directory holds whole repositories. Each of them has the same protected names, and a new one counts as a new git directory. */
static int is_closed_in_holder(const struct listed *item, const char *rest, const char *open) {
  const char *first = next_word(rest), *at = next_word(first);
  if (!*at && is_of_entry(item)) return 1;
  for (; *at; at = next_word(at))
    if (reaches_closed(item, at, REPOSITORY_SYSTEM[0].closed, open)) return 1;
  return 0;
}

/* `rest` is what follows the root of a repository of `system`. */
static int is_closed_in(const struct repository_system *system, const struct listed *item, const char *rest, const char *open) {
  if (!*rest) return is_of_entry(item) || !S_ISDIR(item->now); /* a file leads to a repository elsewhere */
  const char *holder = kept_holder(system, rest);
  if (holder) return !is_open(open, holder) && is_closed_in_holder(item, rest, open);
  for (const char *const *name = system->pinned; *name; name++)
    if (strcmp(rest, *name) == 0 && is_replacing(item)) return 1;
  return reaches_closed(item, rest, system->closed, open);
}

/* A directory with harmless files becomes one that git obeys when the last of them comes. */
static int is_making_repository(const struct listed *item, const char *rest) { return !strchr(rest, '/') && repository_part(rest) && is_replacing(item); }

static const char *behind(const struct listed *item, const struct listed *root) {
  if (strcmp(root->path, ".") == 0) return item->path;
  return item->path + root->length + (item->path[root->length] == '/');
}

/* Directories that git takes for a repository, whatever their name is. */
static int is_in_found(const struct list *list, const struct listed *item, const char *open) {
  const struct repository_system *git = &REPOSITORY_SYSTEM[0];
  int roots = 0;
  for (size_t at = item->repository; at != NOWHERE; at = list->item[at].repository) {
    const char *rest = behind(item, &list->item[at]);
    if (++roots > ROOTS_MAX || is_closed_in(git, item, rest, open)) return 1;
    if (list->item[at].kind == NEW_GIT && is_making_repository(item, rest)) return 1;
  }
  return 0;
}

/* Directories that a system looks for by their name. */
static int is_in_named(const struct listed *item, const char *open) {
  int roots = 0;
  for (const char *at = item->path; *at; at = next_word(at))
    for (int i = 0; i < REPOSITORY_SYSTEMS; i++) {
      if (!is_word(at, REPOSITORY_SYSTEM[i].name) || is_open(open, REPOSITORY_SYSTEM[i].name)) continue;
      if (++roots > ROOTS_MAX || is_closed_in(&REPOSITORY_SYSTEM[i], item, next_word(at), open)) return 1;
    }
  return 0;
}

static int is_in_repository(const struct list *list, const struct listed *item, const char *open) {
  return open && ((!is_open(open, REPOSITORY_SYSTEM[0].name) && is_in_found(list, item, open)) || is_in_named(item, open));
}

/* By itself. A zone that the record does not have cannot be judged. */
static int is_named(const struct protection *protection, const struct list *list, const struct listed *item) {
  if (item->zone >= protection->zones || item->is_privileged || is_closed_on_host(protection, item)) return 1;
  const struct protected_zone *zone = &protection->zone[item->zone];
  for (size_t i = 0; i < zone->names; i++)
    if (reaches(item, item->path, zone->name[i])) return 1;
  return is_in_repository(list, item, zone->open);
}

/* ---- by the others ---- */

enum { NAMED = 1, TAKEN = 2, IN_MADE = 4, SOURCE = 8, IN_SOURCE = 16 };

/* A change that removes or replaces a directory does so to everything in it. */
static void take_around(const struct list *list, unsigned char *found, size_t item) {
  for (size_t at = list->item[item].above; at != NOWHERE && !(found[at] & TAKEN); at = list->item[at].above) found[at] |= TAKEN;
}

static void judge_alone(const struct protection *protection, const struct list *list, unsigned char *found) {
  for (size_t i = 0; i < list->count; i++)
    if (is_change(&list->item[i]) && is_named(protection, list, &list->item[i])) found[i] = NAMED;
  for (size_t i = 0; i < list->count; i++)
    if ((found[i] & NAMED) && list->item[i].nested) take_around(list, found, i);
}

/* Marks everything in an item that has the mark `of` and `is` of that kind. Directories come first. */
static void mark_inside(const struct list *list, unsigned char *found, int of, int inside, int (*is)(const struct listed *item)) {
  for (size_t i = 0; i < list->count; i++) {
    size_t above = list->item[i].above;
    if (above != NOWHERE && ((found[above] & inside) || ((found[above] & of) && is(&list->item[above])))) found[i] |= (unsigned char)inside;
  }
}

static int is_deleted(const struct listed *item) { return item->kind == DELETED; }

static int is_by_marks(const struct listed *item, unsigned char found) {
  return (found & (NAMED | IN_MADE | SOURCE)) || ((found & TAKEN) && is_replacing(item)) || ((found & IN_SOURCE) && is_deleted(item));
}

/* A directory that is not renamed stays where it was. */
static int mark_sources(const struct list *list, unsigned char *found) {
  struct protection from = {0};
  int done = 0;
  for (size_t i = 0; i < list->count && done == 0; i++)
    if (list->item[i].kind == RENAMED && is_by_marks(&list->item[i], found[i])) done = protection_close(&from, list->item[i].zone, list->item[i].other);
  if (done == 0 && from.count) qsort(from.closed, from.count, sizeof *from.closed, by_place);
  for (size_t i = 0; i < list->count && done == 0 && from.count; i++) {
    struct closed_place place = {list->item[i].zone, list->item[i].path, list->item[i].length};
    if (is_deleted(&list->item[i]) && bsearch(&place, from.closed, from.count, sizeof place, by_place)) found[i] |= SOURCE;
  }
  mark_inside(list, found, SOURCE, IN_SOURCE, is_deleted);
  return done;
}

int protect_list(const struct protection *protection, struct list *list) {
  unsigned char *found = calloc(list->count + 1, 1);
  if (!found) return -1;
  judge_alone(protection, list, found);
  mark_inside(list, found, NAMED, IN_MADE, is_making);
  int done = mark_sources(list, found);
  for (size_t i = 0; i < list->count; i++) list->item[i].is_protected = is_by_marks(&list->item[i], found[i]);
  free(found);
  return done;
}
