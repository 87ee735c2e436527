#include "runner/observer.h"

#include "lib/fd-message.h"
#include "lib/observed-calls.h"
#include "lib/report-failure.h"
#include "lib/syscalls.h"
#include "runner/observer-look.h"
#include "runner/observer-walls.h"
#include "sandbox/idmap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* For its report: it has only to ask the host for some names. */
#define REPORT_NS 1000000000ull
/* For its end, once it is killed. */
#define END_MS 100
/* Names that are missing inside, of which the host has a few. */
#define CANDIDATES_MAX 1024

/* Linux 6.6: who calls and who observes wake each other on one processor. A third of the time; elsewhere EINVAL. */
#define NOTIF_SET_FLAGS _IOW('!', 4, uint64_t)
#define FD_SYNC_WAKE_UP 1ul

/* Its only descriptors. */
enum { LISTENER = 0, REPORT = 1, HOST = 2 };

/* ---- what it has noted ---- */

struct rows {
  struct observed_row *row;
  size_t count, room;
};

static struct observed_row refused_row[OBSERVED_ROWS_MAX], missing_row[CANDIDATES_MAX];
static struct rows refused = {refused_row, 0, OBSERVED_ROWS_MAX}, missing = {missing_row, 0, CANDIDATES_MAX};
static struct observed_head head;
static uint64_t calls; /* seen so far */
static int has_network;
static char workspace[OBSERVED_PATH_MAX]; /* the host's directory at /NAME in which the command starts; empty = there is none */

static struct observed_row *oldest(struct rows *rows) {
  struct observed_row *found = rows->row;
  for (size_t i = 1; i < rows->count; i++)
    if (rows->row[i].last < found->last) found = &rows->row[i];
  return found;
}

/* The last ones are kept: what a command could not do before it gave up is most often the reason. */
static void note(struct rows *rows, enum observation what, const char *path) {
  for (size_t i = 0; i < rows->count; i++) {
    struct observed_row *row = &rows->row[i];
    if (row->what != what || strcmp(row->path, path) != 0) continue;
    row->count++, row->last = calls;
    return;
  }
  if (rows == &refused && rows->count == rows->room) head.omitted++; /* dropping a name that may exist nowhere loses nothing */
  struct observed_row *row = rows->count < rows->room ? &rows->row[rows->count++] : oldest(rows);
  *row = (struct observed_row){.what = what, .count = 1, .last = calls};
  copy_text(row->path, sizeof row->path, path);
}

/* ---- one call ---- */

/* O_ACCMODE of musl has O_PATH in it. */
static int writes(uint64_t flags) { return (flags & (O_WRONLY | O_RDWR | O_TRUNC)) && !(flags & O_PATH); }

/* Whether a mount that can be written would have let it do something. */
static int would_change(const struct observed_call *call, uint64_t flags, const struct place *place) {
  switch ((enum observed_act)call->act) {
    case ACT_OPEN:
    case ACT_OPEN_HOW:
      if (place->missing) return place->missing == 1 && (flags & O_CREAT);
      return writes(flags) && (S_ISREG(place->mode) || (flags & O_TMPFILE) == O_TMPFILE);
    case ACT_CREATE: return place->missing == 1;
    case ACT_REPLACE: return place->missing <= 1;
    case ACT_REMOVE:
    case ACT_CHANGE: return !place->missing;
    default: return 0;
  }
}

static enum observation missing_as(const struct observed_call *call, uint64_t flags) {
  switch ((enum observed_act)call->act) {
    case ACT_OPEN:
    case ACT_OPEN_HOW: return writes(flags) || (flags & O_CREAT) ? OBSERVED_HIDDEN_WRITE : OBSERVED_HIDDEN_READ;
    case ACT_CREATE:
    case ACT_REPLACE:
    case ACT_CHANGE: return OBSERVED_HIDDEN_WRITE;
    case ACT_EXECUTE: return OBSERVED_HIDDEN_EXECUTE;
    case ACT_CONNECT: return OBSERVED_HIDDEN_SOCKET;
    default: return OBSERVED_HIDDEN_READ;
  }
}

/* The kernel's own file systems: nothing shows more of them. */
static int is_of_kernel(const char *path) {
  return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/dev/", 5) == 0;
}

static void note_place(const struct observed_call *call, uint64_t flags, const struct place *place) {
  if (is_of_kernel(place->path)) return;
  if (would_change(call, flags, place)) {
    if (place_is_read_only(place)) note(&refused, OBSERVED_READ_ONLY, place->path);
  } else if (call->act != ACT_REMOVE && place_may_be_hidden(place)) note(&missing, missing_as(call, flags), place->path);
}

static int follows(const struct observed_call *call, uint64_t flags) {
  switch ((enum observed_act)call->act) {
    case ACT_OPEN:
    case ACT_OPEN_HOW: return !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    case ACT_CREATE:
    case ACT_REPLACE:
    case ACT_REMOVE: return 0;
    case ACT_LOOK: return !(flags & AT_SYMLINK_NOFOLLOW);
    default: return 1;
  }
}

/* The text is the calling process's only if that still waits: its pid can have become another one's. */
static int still_waits(const struct seccomp_notif *notice) { return ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_ID_VALID, &notice->id) == 0; }

static void look_at_path(const struct seccomp_notif *notice, const struct observed_call *call, uint64_t flags, const char *path) {
  struct place place;
  int directory = call->directory < 0 ? AT_FDCWD : (int)notice->data.args[call->directory];
  if (!path[0] || is_of_kernel(path)) return;
  if (place_find(&place, (pid_t)notice->pid, directory, path, follows(call, flags)) < 0) return;
  if (still_waits(notice)) note_place(call, flags, &place);
  close(place.fd);
}

/* ---- connections ---- */

static int is_own_v4(const struct in_addr *address) {
  uint32_t number = ntohl(address->s_addr);
  return number >> 24 == 127 || number >> 24 == 0;
}

static int is_own_v6(const struct in6_addr *address) {
  return IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address) ||
         (IN6_IS_ADDR_V4MAPPED(address) && is_own_v4((const struct in_addr *)&address->s6_addr[12]));
}

static void note_address(int family, const void *address, in_port_t port) {
  char text[INET6_ADDRSTRLEN], place[INET6_ADDRSTRLEN + sizeof "[]:65535"];
  if (port == 0 || !inet_ntop(family, address, text, sizeof text)) return; /* resolvers ask for a route by port 0 */
  snprintf(place, sizeof place, family == AF_INET ? "%s:%u" : "[%s]:%u", text, ntohs(port));
  note(&refused, OBSERVED_UNREACHABLE, place);
}

static void look_at_address(const struct seccomp_notif *notice, const struct observed_call *call) {
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    char bytes[sizeof(struct sockaddr_un) + 1];
  } address = {0};
  uint64_t at = notice->data.args[call->path], size = notice->data.args[call->flags] & 0xffffffff;
  if (!at || size > sizeof address.local) return;
  ssize_t got = process_read((pid_t)notice->pid, at, &address, (size_t)size);
  if (got < 0 && errno == EPERM) head.unread++;
  if (got != (ssize_t)size || !still_waits(notice)) return;
  if (address.any.sa_family == AF_UNIX && size > sizeof(sa_family_t)) look_at_path(notice, call, 0, address.local.sun_path);
  if (has_network) return;
  if (address.any.sa_family == AF_INET && size >= sizeof address.v4 && !is_own_v4(&address.v4.sin_addr))
    note_address(AF_INET, &address.v4.sin_addr, address.v4.sin_port);
  if (address.any.sa_family == AF_INET6 && size >= sizeof address.v6 && !is_own_v6(&address.v6.sin6_addr))
    note_address(AF_INET6, &address.v6.sin6_addr, address.v6.sin6_port);
}

/* ---- the loop ---- */

/* The first word of struct open_how are the flags. */
static uint64_t flags_of(const struct seccomp_notif *notice, const struct observed_call *call) {
  uint64_t flags = call->flags < 0 ? 0 : notice->data.args[call->flags];
  if (call->act != ACT_OPEN_HOW) return flags;
  return process_read((pid_t)notice->pid, flags, &flags, sizeof flags) == sizeof flags ? flags : 0;
}

static void look_at(const struct seccomp_notif *notice, const struct observed_call *call) {
  char path[OBSERVED_PATH_MAX];
  if (call->act == ACT_CONNECT) return look_at_address(notice, call);
  uint64_t address = notice->data.args[call->path];
  if (!address) return;
  if (process_read_text((pid_t)notice->pid, address, path, sizeof path) == 0) look_at_path(notice, call, flags_of(notice, call), path);
  else if (errno == EPERM) head.unread++;
  else if (errno == ENAMETOOLONG) head.omitted++;
}

static void observe(void) {
  struct seccomp_notif notice = {0};
  if (ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_RECV, &notice) < 0) return; /* ENOENT: it is dead already */
  calls++;
  for (size_t i = 0; i < OBSERVED_CALLS; i++)
    if (observed_calls[i].number == notice.data.nr) look_at(&notice, &observed_calls[i]);
  struct seccomp_notif_resp answer = {.id = notice.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  (void)ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* ENOENT likewise */
}

/* ---- the end ---- */

/* A name that climbs out of the workspace is one of the root, and on the host one of any directory above (src/run/led-out.ts). */
static int is_above(const char *path) {
  char directory[OBSERVED_PATH_MAX], candidate[2 * OBSERVED_PATH_MAX];
  copy_text(directory, sizeof directory, workspace);
  for (char *slash; (slash = strrchr(directory, '/')) && slash != directory;) {
    *slash = 0;
    snprintf(candidate, sizeof candidate, "%s%s", directory, path);
    if (host_has(HOST, candidate)) return 1;
  }
  return 0;
}

/* A path that is to be made needs only its directory. */
static int is_hidden(struct observed_row *row) {
  char directory[OBSERVED_PATH_MAX];
  if (host_has(HOST, row->path) || (row->what == OBSERVED_HIDDEN_READ && is_above(row->path))) return 1;
  copy_text(directory, sizeof directory, row->path);
  char *slash = strrchr(directory, '/');
  if (row->what != OBSERVED_HIDDEN_WRITE || !slash || slash == directory) return 0;
  *slash = 0;
  row->what = OBSERVED_HIDDEN_CREATE;
  return host_has(HOST, directory);
}

/* The row that was seen last of those that have not been taken; NULL when there is none any more. */
static struct observed_row *newest(struct rows *rows) {
  struct observed_row *found = NULL;
  for (size_t i = 0; i < rows->count; i++)
    if (rows->row[i].last && (!found || rows->row[i].last > found->last)) found = &rows->row[i];
  return found;
}

/* A path that is missing inside and on the host, too, is not our refusal. */
static void ask_host(void) {
  for (struct observed_row *row; (row = newest(&missing)); row->last = 0) {
    if (!is_hidden(row)) continue;
    if (refused.count == refused.room) head.omitted++;
    else refused.row[refused.count++] = *row;
  }
}

static _Noreturn void report_and_exit(void) {
  ask_host();
  head.rows = (uint32_t)refused.count;
  const char *at = (const char *)refused.row;
  size_t left = refused.count * sizeof *refused.row;
  ssize_t sent = send(REPORT, &head, sizeof head, MSG_NOSIGNAL);
  while (sent > 0 && left > 0) {
    sent = send(REPORT, at, left, MSG_NOSIGNAL);
    if (sent > 0) at += sent, left -= (size_t)sent;
  }
  _exit(0);
}

static _Noreturn void serve(void) {
  struct pollfd watched[] = {{REPORT, POLLIN, 0}, {LISTENER, POLLIN, 0}};
  (void)ioctl(LISTENER, NOTIF_SET_FLAGS, FD_SYNC_WAKE_UP);
  for (;;) {
    if (poll(watched, 2, -1) < 0) continue; /* nothing interrupts it but tracers */
    if (watched[1].revents & POLLIN) observe();
    else if (watched[1].revents) watched[1].fd = -1; /* no process has the filter any more */
    if (watched[0].revents) report_and_exit();
  }
}

static _Noreturn void become_observer(int listener, int report, pid_t launch) {
  uid_t id = getuid() == 0 ? OBSERVER_ID + (uid_t)launch : 0;
  const int from[] = {[LISTENER] = listener, [REPORT] = report, [HOST] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (place_descriptors(from, HOST + 1) < 0 || observer_confine(id) < 0 || getppid() != launch) _exit(125);
  serve();
}

/* ---- launch's side ---- */

static void note_workspace(const struct launchfile *file) {
  struct entry workdir, zone;
  size_t position = 0;
  workspace[0] = 0;
  if (!launchfile_find(file, V_WORKDIR, &workdir)) return;
  while (launchfile_next(file, &position, &zone)) {
    size_t length = zone.verb == V_ZONE ? strlen(zone.word[1]) : 0;
    int holds = length && strncmp(workdir.word[0], zone.word[1], length) == 0 && strchr("/", workdir.word[0][length]);
    if (holds && strrchr(zone.word[1], '/') == zone.word[1] && strlen(zone.word[0]) < sizeof workspace) copy_text(workspace, sizeof workspace, zone.word[0]);
  }
}

int observer_start(struct observer *observer, int listener, const struct launchfile *file) {
  struct entry net;
  int report[2];
  pid_t launch = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0) return -1;
  has_network = !launchfile_find(file, V_NET, &net) || strcmp(net.word[0], "none") != 0;
  note_workspace(file);
  observer->pid = sys_clone_beside();
  if (observer->pid == 0) become_observer(listener, report[1], launch);
  int error = errno;
  close(listener), close(report[1]);
  observer->report = report[0];
  if (observer->pid > 0) return 0;
  observer->pid = 0;
  errno = error;
  return -1;
}

static int read_report(int socket, struct observed_report *result) {
  uint64_t until = now_ns() + REPORT_NS;
  if (stream_receive(socket, &result->head, sizeof result->head, until) < 0 || result->head.rows > OBSERVED_ROWS_MAX) return -1;
  if (stream_receive(socket, result->row, result->head.rows * sizeof *result->row, until) < 0) return -1;
  for (uint32_t i = 0; i < result->head.rows; i++) result->row[i].path[OBSERVED_PATH_MAX - 1] = 0;
  return 0;
}

/* One that hangs in a look at a file system is killed as soon as that answers; launch does not wait for it. */
static void end(pid_t pid) {
  if (pid <= 0) return;
  (void)kill(pid, SIGKILL);
  for (int waited = 0; waited < END_MS && waitpid(pid, NULL, __WCLONE | WNOHANG) == 0; waited++) usleep(1000);
}

void observer_finish(struct observer *observer) {
  static struct observed_report lost = {.is_lost = 1};
  if (observer->report < 0) return;
  observer->result = calloc(1, sizeof *observer->result);
  int is_read = observer->result && shutdown(observer->report, SHUT_WR) == 0 && read_report(observer->report, observer->result) == 0;
  if (!is_read) observer->result = &lost;
  close(observer->report);
  observer->report = -1;
  end(observer->pid);
  observer->pid = 0;
}
