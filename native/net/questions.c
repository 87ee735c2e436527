#include "net/questions.h"

#include "lib/report-failure.h"
#include "net/host-name.h"
#include "net/hosts.h"
#include "net/timers.h"
#include "net/verdicts.h"

#include <stddef.h>
#include <string.h>

#define QUESTIONS_MAX 64 /* of a run: a person reads no more */
#define NAMES_MAX 256    /* that get an address on the mere prospect of a question */
#define HELD_MAX 64
#define ANSWER_NS 60000000000ull

struct question {
  char host[HOST_NAME_BYTES];
  uint16_t port;
  enum { WAITS, OPEN, SETTLED } state;
  struct timer timer; /* of an open question, and of one that waits while no program answers yet */
};

static struct question questions[QUESTIONS_MAX];
static struct held {
  int fd;
  void (*judge)(int fd);
  struct question *question;
} held[HELD_MAX];
static int question_count, held_count, name_count;
static int are_expected;
static int (*ask)(const char *host, uint16_t port, int fd); /* NULL = no program answers */

/* ---- the order of questions ---- */

static struct question *first_in(int state) {
  for (int i = 0; i < question_count; i++)
    if ((int)questions[i].state == state) return &questions[i];
  return NULL;
}

static int socket_of(const struct question *question) {
  for (int i = 0; i < held_count; i++)
    if (held[i].question == question) return held[i].fd;
  return -1;
}

static void on_time(struct timer *timer);

static void ask_next(void) {
  struct question *question = ask && !first_in(OPEN) ? first_in(WAITS) : NULL;
  if (!question || ask(question->host, question->port, socket_of(question)) < 0) return;
  question->state = OPEN;
  timer_start(&question->timer, ANSWER_NS, on_time);
}

/* Its connections are judged by the rules as they are now. */
static void settle(struct question *question) {
  question->state = SETTLED;
  timer_stop(&question->timer);
  for (int i = 0; i < held_count;) {
    if (held[i].question != question) {
      i++;
      continue;
    }
    struct held one = held[i];
    held[i] = held[--held_count];
    one.judge(one.fd);
  }
}

static void on_time(struct timer *timer) {
  settle((struct question *)((char *)timer - offsetof(struct question, timer)));
  ask_next();
}

static void settle_all(void) {
  for (int i = 0; i < question_count; i++)
    if (questions[i].state != SETTLED) settle(&questions[i]);
}

/* ---- who answers ---- */

void questions_expect(void) { are_expected = 1; }

void questions_begin(int (*how)(const char *host, uint16_t port, int fd)) {
  are_expected = 1;
  ask = how;
  for (int i = 0; i < question_count; i++)
    if (questions[i].state == WAITS) timer_stop(&questions[i].timer);
  ask_next();
}

void questions_end(void) {
  are_expected = 0;
  ask = NULL;
  settle_all();
}

void questions_judge_again(void) {
  for (int i = 0; i < question_count; i++)
    if (questions[i].state != SETTLED && !verdict_is_open(questions[i].host, questions[i].port)) settle(&questions[i]);
  ask_next();
}

static struct question *find(const char *host, uint16_t port) {
  for (int i = 0; i < question_count; i++)
    if (questions[i].port == port && strcmp(questions[i].host, host) == 0) return &questions[i];
  return NULL;
}

void questions_refuse(const char *host, uint16_t port) {
  struct question *question = find(host, port);
  if (question && question->state != SETTLED) settle(question);
  ask_next();
}

/* ---- what is asked for ---- */

int questions_may_come(const char *name) {
  if (!are_expected || question_count == QUESTIONS_MAX || !verdict_is_open(name, 0)) return 0;
  struct host *host = hosts_find(name);
  if (!host || host->stand_in) return host != NULL;
  if (name_count < NAMES_MAX) return ++name_count;
  return hosts_release(host), 0;
}

static struct question *make(const char *host, uint16_t port) {
  if (question_count == QUESTIONS_MAX) return NULL;
  struct question *question = &questions[question_count++];
  *question = (struct question){.port = port, .state = WAITS};
  if (!ask) timer_start(&question->timer, ANSWER_NS, on_time);
  copy_text(question->host, sizeof question->host, host);
  return question;
}

int questions_hold(const char *host, uint16_t port, int fd, void (*judge)(int fd)) {
  if (!are_expected || held_count == HELD_MAX || !verdict_is_open(host, port)) return 0;
  struct question *question = find(host, port);
  if (!question) question = make(host, port);
  if (!question || question->state == SETTLED) return 0;
  held[held_count++] = (struct held){fd, judge, question};
  ask_next();
  return 1;
}
