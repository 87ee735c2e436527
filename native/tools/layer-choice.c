#include "tools/layer-choice.h"

#include "lib/arena.h"
#include "lib/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ---- */

struct place {
  size_t zone;
  char *path;
  int is_making; /* there is a new one at the path itself: who names it names what is in it */
  size_t wish;   /* of these, counted from 1 */
};

struct places {
  struct place *item;
  size_t count;
  struct arena paths;
};

static char *last_slash(char *path) { return strrchr(path, '/'); }

/* Without `.`, empty words, and `..` behind a word. "" becomes ".". In its own memory. */
static char *tidy(const char *path) {
  char *clean = malloc(strlen(path) + 2), *end = clean;
  if (!clean) return NULL;
  int is_absolute = path[0] == '/';
  if (is_absolute) *end++ = '/';
  *end = 0;
  for (const char *at = path; *at; at += strspn(at, "/")) {
    size_t length = strcspn(at, "/");
    char *begin = clean + is_absolute, *before = last_slash(begin);
    const char *last = before ? before + 1 : begin;
    if (length == 0 || (length == 1 && at[0] == '.')) at += length;
    else if (length == 2 && strncmp(at, "..", 2) == 0 && (is_absolute || (*last && strcmp(last, "..") != 0))) {
      end = before ? before : begin;
      *end = 0;
      at += length;
    } else {
      if (end > begin) *end++ = '/';
      memcpy(end, at, length);
      end += length;
      *end = 0;
      at += length;
    }
  }
  if (!clean[0]) memcpy(clean, ".", 2);
  return clean;
}

static int add_place(struct places *places, size_t zone, const char *path, size_t wish) {
  struct place place = {zone, arena_copy(&places->paths, path, strlen(path)), 0, wish};
  return place.path ? append(places->item, places->count, &place) : -1;
}

/* The path below the root of the zone; NULL = it is not in there. */
static const char *below_zone(const char *path, const char *source) {
  if (strcmp(source, "/") == 0) return path[1] ? path + 1 : ".";
  if (!is_at_or_below(path, source)) return NULL;
  const char *rest = path + strlen(source);
  return *rest ? rest + 1 : ".";
}

/* An absolute path lies in one zone; a relative one may be meant in each. */
static int add_places(struct places *places, const struct layer *layer, const char *written, size_t wish) {
  char *path = tidy(written);
  int done = path ? 0 : -1;
  for (size_t i = 0; i < layer->zones && done == 0; i++) {
    const char *rest = path[0] == '/' ? below_zone(path, layer->zone[i].source) : path;
    if (rest) done = add_place(places, i, rest, wish);
  }
  free(path);
  return done;
}

static void free_places(struct places *places) {
  arena_free(&places->paths);
  free(places->item);
}

static int is_at(const struct listed *item, const struct place *place) {
  return item->zone == place->zone && (strcmp(place->path, ".") == 0 || is_at_or_below(item->path, place->path));
}

static int is_itself(const struct listed *item, const struct place *place) { return item->zone == place->zone && strcmp(item->path, place->path) == 0; }

/* 0, or the wish of a place that no change has, where none of the same wish has one. -1 with errno. */
static long note_places(const struct list *list, struct places *places, size_t wishes) {
  unsigned char *has = calloc(wishes + 1, 1);
  if (!has) return -1;
  for (size_t i = 0; i < places->count; i++)
    for (size_t j = 0; j < list->count; j++) {
      if (!is_change(&list->item[j]) || !is_at(&list->item[j], &places->item[i])) continue;
      has[places->item[i].wish] = 1;
      if (is_making(&list->item[j]) && is_itself(&list->item[j], &places->item[i])) places->item[i].is_making = 1;
    }
  size_t lacks = 1;
  while (lacks <= wishes && has[lacks]) lacks++;
  free(has);
  return lacks > wishes ? 0 : (long)lacks;
}

/* ---- the choice ---- */

enum { NOT_MEANT, MEANT, BY_NAME };

static int meaning_of(const struct listed *item, const struct places *places, size_t wishes) {
  int meaning = wishes ? NOT_MEANT : MEANT;
  for (size_t i = 0; i < places->count && meaning != BY_NAME; i++)
    if (is_at(item, &places->item[i])) meaning = places->item[i].is_making || is_itself(item, &places->item[i]) ? BY_NAME : MEANT;
  return meaning;
}

static void choose_one(struct listed *item, int meaning, const struct wish *wish) {
  int is_spared = item->is_protected && !wish->is_for_all && (wish->is_not_a_person || meaning != BY_NAME);
  item->is_left = meaning != NOT_MEANT && (is_special(item) || is_spared);
  item->is_chosen = meaning != NOT_MEANT && !item->is_left;
}

/* A path in a directory that is new needs the directory. */
static int choose_parents(struct list *list) {
  unsigned char *is_needed = calloc(list->count + 1, 1);
  if (!is_needed) return -1;
  for (size_t i = list->count; i-- > 0;) {
    struct listed *item = &list->item[i];
    if (is_needed[i] && is_making(item)) item->is_chosen = 1;
    if ((is_needed[i] || item->is_chosen) && item->above != NOWHERE) is_needed[item->above] = 1;
  }
  free(is_needed);
  return 0;
}

static int is_left_tree(const struct listed *item) { return item->is_left && !is_special(item) && (is_making(item) || item->kind == DELETED); }

static int keep_outermost(struct list *list) {
  unsigned char *inside = calloc(list->count + 1, 1);
  if (!inside) return -1;
  for (size_t i = 0; i < list->count; i++) {
    size_t above = list->item[i].above;
    inside[i] = above != NOWHERE && (inside[above] || is_left_tree(&list->item[above]));
  }
  for (size_t i = 0; i < list->count; i++)
    if (inside[i] && !is_special(&list->item[i])) list->item[i].is_left = 0;
  free(inside);
  return 0;
}

long choose_changes(struct list *list, const struct layer *layer, const struct wish *wish) {
  struct places places = {0};
  long done = 0;
  for (size_t i = 0; i < wish->paths && done == 0; i++) done = add_places(&places, layer, wish->path[i], i + 1);
  if (done == 0) done = note_places(list, &places, wish->paths);
  for (size_t i = 0; i < list->count && done == 0; i++)
    if (is_change(&list->item[i])) choose_one(&list->item[i], meaning_of(&list->item[i], &places, wish->paths), wish);
  free_places(&places);
  if (done == 0 && (choose_parents(list) < 0 || keep_outermost(list) < 0)) done = -1;
  return done;
}
