#include "runner/freshness.h"

#include "lib/launch-cache.h"
#include "lib/report-failure.h"

#include <string.h>

static int is_guard(const struct entry *entry) { return entry->verb == V_AT || entry->verb == V_CONTENT; }

/* Looks at the guards among the next `most` entries. 0 = one does not hold. */
static int look(const struct launchfile *plan, size_t *position, size_t most) {
  struct entry entry;
  while (most-- > 0 && launchfile_next(plan, position, &entry))
    if (is_guard(&entry) && !guard_holds(&entry)) return 0;
  return 1;
}

int is_fresh(const struct launchfile *plan) {
  size_t position = 0;
  return look(plan, &position, SIZE_MAX);
}

/* ---- looks ahead ---- */

/* Takes about 10 microseconds, so other events do not wait long. */
#define LOOKS_AT_ONCE 8

int looks_are_left(const struct looks *looks, const struct launchfile *plan) { return !looks->has_failed && looks->position < plan->count; }

void look_ahead(struct looks *looks, const struct launchfile *plan) {
  if (!looks->begun_ns) looks->begun_ns = now_ns();
  looks->has_failed |= !look(plan, &looks->position, LOOKS_AT_ONCE);
}

void looks_were_made(struct looks *looks, const struct launchfile *plan, uint64_t since_ns) {
  if (since_ns == 0) return;
  looks->begun_ns = since_ns;
  looks->position = plan->count;
}

/* Up to which entry they still hold. A time that is yet to come is as far away as one long ago. */
static size_t position_after(const struct looks *looks) { return looks->begun_ns && now_ns() - looks->begun_ns < LOOKS_HOLD_NS ? looks->position : 0; }

static int is_fresh_after(const struct looks *looks, const struct launchfile *plan) {
  size_t position = position_after(looks);
  return !looks->has_failed && look(plan, &position, SIZE_MAX);
}

/* ---- a plan and a sandbox ---- */

static int is_same_guard(const struct entry *a, const struct entry *b) {
  return a->verb == b->verb && strcmp(a->word[0], b->word[0]) == 0 && strcmp(a->word[1], b->word[1]) == 0;
}

/* How far the same guard may be apart in two lists of which one has more than the other. */
#define GUARDS_APART 16

/* Looks for the guard a little further on than `position`, which then is behind it. */
static int has_guard(const struct launchfile *file, size_t *position, const struct entry *wanted) {
  struct entry entry;
  size_t at = *position;
  for (int seen = 0; seen < GUARDS_APART && launchfile_next(file, &at, &entry);) {
    if (!is_guard(&entry)) continue;
    if (is_same_guard(&entry, wanted)) return *position = at, 1;
    seen++;
  }
  return 0;
}

/* The guards of `wanted` that `own` has not: two plans of one sandbox have nearly the same. */
static int is_fresh_besides(const struct launchfile *wanted, const struct launchfile *own, const struct looks *looks) {
  struct entry entry;
  size_t position = position_after(looks), in_own = 0;
  if (looks->has_failed) return 0;
  while (launchfile_next(wanted, &position, &entry))
    if (is_guard(&entry) && !has_guard(own, &in_own, &entry) && !guard_holds(&entry)) return 0;
  return 1;
}

static const char *next_key(const struct launchfile *file, size_t *position) {
  struct entry entry;
  return launchfile_next_of(file, V_KEY, position, &entry) ? entry.word[0] : NULL;
}

static int is_same_caller(const struct launchfile *a, const struct launchfile *b) {
  size_t in_a = 0, in_b = 0;
  for (int word = 0; word < KEY_CALLER_WORDS; word++) {
    const char *one = next_key(a, &in_a), *other = next_key(b, &in_b);
    if (!one || !other || strcmp(one, other) != 0) return 0;
  }
  return 1;
}

/* Of what the sandbox is built: everything from V_ENGINE on. */
static int is_same_tree(const struct launchfile *a, const struct launchfile *b, const struct entry *engine_of_b) {
  struct entry engine_of_a;
  if (!launchfile_find(a, V_ENGINE, &engine_of_a)) return 0;
  size_t from = (size_t)(engine_of_a.word[0] - a->bytes), at = (size_t)(engine_of_b->word[0] - b->bytes);
  return a->size - from == b->size - at && memcmp(a->bytes + from, b->bytes + at, a->size - from) == 0;
}

int serves(const struct launchfile *own, const struct launchfile *wanted, const struct looks_ahead *ahead) {
  struct entry engine;
  if (launchfile_find(wanted, V_ENGINE, &engine) && !(is_same_caller(own, wanted) && is_same_tree(own, wanted, &engine))) return 0;
  return is_fresh_after(&ahead->own, own) && (wanted->bytes == own->bytes || is_fresh_besides(wanted, own, &ahead->wanted));
}
