/*
 * Paths in the configuration of a repository: hooks, included files, and programs that git starts. The host runs them later, so they are
 * closed where they lie in a writable zone. The file is read as git reads it (lib/git-config.h), and git is not started.
 *
 * Mercurial and Jujutsu start programs by nearly every key, so of their files every word that is a file of a zone is closed, and
 * what an extension or an `%include` names is closed and watched, too (hgrc(5); config.md of Jujutsu).
 *
 * The condition of an `includeIf` is not asked: it may hold another day. Files of the user and of the machine are read for each repository,
 * since what they name may be meant from its directory. Where variables name others (GIT_CONFIG_GLOBAL), these are not read.
 */
#include "lib/guard.h"

#include "lib/files.h"
#include "lib/git-config.h"
#include "lib/launch-file.h"
#include "lib/report-failure.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Some thousand times what a repository with many branches takes. */
#define CONFIG_MAX (4u << 20)

/* ---- which values count ---- */

enum meaning {
  NAMES_NOTHING,
  NAMES_PATH,    /* from the directory in which programs are started */
  NAMES_CONFIG,  /* from the directory of the file */
  NAMES_PROGRAM, /* a line of the shell */
  NAMES_ALIAS    /* the same behind "!", and nothing otherwise */
};

/* By section and name, "*" = any name. From git-config(1), git-hook(1) and git-lfs-config(5). */
static const struct {
  const char *section, *name;
  enum meaning meaning;
} KEYS[] = {
    {"include", "path", NAMES_CONFIG},
    {"includeif", "path", NAMES_CONFIG},
    {"core", "hookspath", NAMES_PATH},
    {"core", "attributesfile", NAMES_PATH},
    {"init", "templatedir", NAMES_PATH},
    {"core", "fsmonitor", NAMES_PROGRAM},
    {"core", "sshcommand", NAMES_PROGRAM},
    {"core", "editor", NAMES_PROGRAM},
    {"core", "pager", NAMES_PROGRAM},
    {"core", "askpass", NAMES_PROGRAM},
    {"core", "gitproxy", NAMES_PROGRAM},
    {"core", "alternaterefscommand", NAMES_PROGRAM},
    {"sequence", "editor", NAMES_PROGRAM},
    {"interactive", "difffilter", NAMES_PROGRAM},
    {"pager", "*", NAMES_PROGRAM},
    {"diff", "external", NAMES_PROGRAM},
    {"diff", "command", NAMES_PROGRAM},
    {"diff", "textconv", NAMES_PROGRAM},
    {"filter", "clean", NAMES_PROGRAM},
    {"filter", "smudge", NAMES_PROGRAM},
    {"filter", "process", NAMES_PROGRAM},
    {"merge", "driver", NAMES_PROGRAM},
    {"mergetool", "cmd", NAMES_PROGRAM},
    {"mergetool", "path", NAMES_PROGRAM},
    {"difftool", "cmd", NAMES_PROGRAM},
    {"difftool", "path", NAMES_PROGRAM},
    {"browser", "cmd", NAMES_PROGRAM},
    {"browser", "path", NAMES_PROGRAM},
    {"man", "cmd", NAMES_PROGRAM},
    {"man", "path", NAMES_PROGRAM},
    {"gpg", "program", NAMES_PROGRAM},
    {"gpg", "defaultkeycommand", NAMES_PROGRAM},
    {"hook", "command", NAMES_PROGRAM},
    {"trailer", "command", NAMES_PROGRAM},
    {"trailer", "cmd", NAMES_PROGRAM},
    {"tar", "command", NAMES_PROGRAM},
    {"remote", "uploadpack", NAMES_PROGRAM},
    {"remote", "receivepack", NAMES_PROGRAM},
    {"uploadpack", "packobjectshook", NAMES_PROGRAM},
    {"sendemail", "*", NAMES_PROGRAM},
    {"guitool", "cmd", NAMES_PROGRAM},
    {"instaweb", "httpd", NAMES_PROGRAM},
    {"gc", "recentobjectshook", NAMES_PROGRAM},
    {"imap", "tunnel", NAMES_PROGRAM},
    {"lfs", "path", NAMES_PROGRAM}, /* lfs.customtransfer.NAME.path */
    {"lfs", "clean", NAMES_PROGRAM},
    {"lfs", "smudge", NAMES_PROGRAM},
    {"credential", "helper", NAMES_ALIAS},
    {"alias", "*", NAMES_ALIAS},
    {"submodule", "update", NAMES_ALIAS},
};

static enum meaning meaning_of(const char *key) {
  size_t section = strcspn(key, ".");
  const char *dot = strrchr(key, '.'), *name = dot ? dot + 1 : key;
  for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
    if (strlen(KEYS[i].section) == section && strncmp(KEYS[i].section, key, section) == 0 && (strcmp(KEYS[i].name, "*") == 0 || strcmp(KEYS[i].name, name) == 0))
      return KEYS[i].meaning;
  return NAMES_NOTHING;
}

/* ---- leads ---- */

struct config {
  struct guard *guard;
  const char *base; /* where git starts programs */
  const char *at;
  char directory[PATH_MAX]; /* of the file */
};

/* "~/x" is in the user's home. */
static int add_lead(struct config *config, const char *from, const char *text, enum lead_end end) {
  char path[PATH_MAX];
  const char *home = config->guard->home;
  if (text[0] == '~' && text[1] == '/') {
    if (!home || home[0] != '/') return 0;
    if ((size_t)snprintf(path, sizeof path, "%s%s", home, text + 1) >= sizeof path) return errno = ENAMETOOLONG, -1;
    text = path;
  }
  return guard_add_lead(config->guard, &(struct guard_lead){from, text, end, config->base});
}

#define BETWEEN_WORDS " \t\n\r\"'`;|&()<>${}"

/* `--option=VALUE` or `NAME=VALUE`: the value may be a file. */
static const char *value_of(const char *word) {
  const char *sign = strchr(word, '=');
  return sign && sign < word + strcspn(word, "/") ? sign + 1 : NULL;
}

/* A word that begins with a variable or a command, such as `$HOME/x`: the part after its first slash may lie in the directory or in the home. */
static int add_rest(struct config *config, const char *word) {
  const char *slash = strchr(word, '/'), *home = config->guard->home;
  const char *rest = slash ? slash + strspn(slash, "/") : "";
  if (!rest[0]) return 0;
  if (home && home[0] == '/' && add_lead(config, home, rest, LEAD_WORD) < 0) return -1;
  return add_lead(config, config->base, rest, LEAD_WORD);
}

/* "$NAME/x", "${NAME}/x", "$(command)/x", "`command`/x", and the same in quotes. */
static int follows_expansion(const char *line, const char *at) { return at > line && (at[-1] == '$' || (at[0] == '/' && strchr(")}`\"'", at[-1]))); }

/*
 * Each word of the line may be a file of the zone: "./x", "sh tools/x.sh", "NAME=1 x --option=y". The program itself is watched where it
 * is missing, unless the shell looks for it on PATH; the other words may name what the program makes.
 */
static int add_words(struct config *config, const char *line) {
  char word[PATH_MAX];
  int is_program = 1;
  for (const char *at = line + strspn(line, BETWEEN_WORDS); *at; at += strspn(at, BETWEEN_WORDS)) {
    size_t length = strcspn(at, BETWEEN_WORDS);
    int is_rest = follows_expansion(line, at);
    snprintf(word, sizeof word, "%.*s", (int)length, at);
    at += length;
    if (length >= sizeof word) continue; /* no path */
    if (is_rest && add_rest(config, word) < 0) return -1;
    const char *value = value_of(word), *path = value ? value : word;
    if (path[0] && path[0] != '-' && path[0] != '%' && add_lead(config, config->base, path, is_program && !value && strchr(path, '/') ? LEAD_PATH : LEAD_WORD) < 0) return -1;
    if (!value) is_program = 0;
  }
  return 0;
}

/* A path with blanks in it is one word where nothing else is in the line. */
static int add_program(struct config *config, const char *line) {
  if (strchr(line, '/') && strpbrk(line, " \t") && add_lead(config, config->base, line, LEAD_WORD) < 0) return -1;
  return add_words(config, line);
}

/* Programs start in the work tree, wherever it is. The file is read a second time, as it is from there. */
static int move_base(struct config *config, const char *tree) {
  char path[PATH_MAX], real[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s%s%s", tree[0] == '/' ? "" : config->directory, tree[0] == '/' ? "" : "/", tree) >= sizeof path) return errno = ENAMETOOLONG, -1;
  if (!realpath(path, real)) {
    if (errno != ENOENT) return copy_text(config->guard->failed, sizeof config->guard->failed, path), -1;
    copy_text(real, sizeof real, path); /* git stops there, until somebody makes it */
  }
  return strcmp(real, config->base) == 0 ? 0 : guard_add_lead(config->guard, &(struct guard_lead){"/", config->at, LEAD_CONFIG, real});
}

static int on_value(void *data, const char *key, const char *value) {
  struct config *config = data;
  if (!value || !value[0]) return 0;
  if (strcmp(key, "core.worktree") == 0) return move_base(config, value);
  switch (meaning_of(key)) {
    case NAMES_NOTHING: return 0;
    case NAMES_PATH: return add_lead(config, config->base, value, LEAD_PATH);
    case NAMES_CONFIG: return add_lead(config, config->directory, value, LEAD_CONFIG);
    case NAMES_PROGRAM: return add_program(config, value);
    case NAMES_ALIAS: return value[0] == '!' ? add_words(config, value + 1) : value[0] == '/' ? add_program(config, value) : 0;
  }
  return 0;
}

/* ---- files ---- */

/* NULL with errno. Anything but a regular file is EISDIR: reading a FIFO would block. The caller frees. */
static char *read_text(struct guard *guard, const char *path, size_t *size) {
  struct stat status;
  int fd = guard_open_file(guard, path);
  char *text = NULL;
  if (fd >= 0 && fstat(fd, &status) == 0) {
    errno = EISDIR;
    if (S_ISREG(status.st_mode)) text = read_all(fd, CONFIG_MAX, size);
  }
  close_with(fd, 0);
  return text;
}

static void directory_of(const char *path, char *to) {
  copy_text(to, PATH_MAX, path);
  char *slash = strrchr(to, '/');
  if (slash) slash[slash == to] = 0;
}

int guard_read_config(struct guard *guard, const char *at, const char *base) {
  struct config config = {.guard = guard, .base = base, .at = at};
  size_t size;
  directory_of(at, config.directory);
  char *text = read_text(guard, at, &size);
  if (!text && (errno == EISDIR || errno == ENOENT || errno == ENOTDIR)) return 0;
  int done = text ? git_config_read(text, size, on_value, &config) : -1;
  free(text);
  if (done < 0) copy_text(guard->failed, sizeof guard->failed, at);
  return done;
}

/* ---- Mercurial and Jujutsu ---- */

/* The rest of the line behind `mark`, without blanks around it; NULL = it begins otherwise. */
static const char *behind(char *line, const char *mark) {
  if (strncmp(line, mark, strlen(mark)) != 0) return NULL;
  char *rest = line + strlen(mark);
  rest += strspn(rest, " \t");
  for (size_t length = strlen(rest); length > 0 && strchr(" \t\r", rest[length - 1]); length--) rest[length - 1] = 0;
  return rest;
}

/* A path may be meant from where programs start, or from the file's directory. */
static int add_both(struct config *config, const char *text, enum lead_end end) {
  return add_lead(config, config->base, text, end) < 0 || add_lead(config, config->directory, text, end) < 0 ? -1 : 0;
}

static int add_hgrc_words(struct config *config, char *line) {
  static const char BETWEEN[] = BETWEEN_WORDS "=,[]:!";
  char *saved = NULL;
  for (char *word = strtok_r(line, BETWEEN, &saved); word; word = strtok_r(NULL, BETWEEN, &saved))
    if (strlen(word) < PATH_MAX && (add_both(config, word, LEAD_WORD) < 0 || add_rest(config, word) < 0)) return -1;
  return 0;
}

/* `name = path` in the section of extensions; "!" switches one off, and a name alone is looked for elsewhere. */
static const char *extension_of(char *line) {
  char *sign = strchr(line, '=');
  const char *path = sign ? behind(sign, "=") : NULL;
  return path && path[0] && path[0] != '!' && strlen(path) < PATH_MAX ? path : NULL;
}

static int on_hgrc_line(struct config *config, char *line, int *in_extensions) {
  const char *include = behind(line, "%include");
  if (include) return include[0] && strlen(include) < PATH_MAX ? add_lead(config, config->directory, include, LEAD_HGRC) : 0;
  if (line[0] == '[') *in_extensions = strncmp(line, "[extensions]", strlen("[extensions]")) == 0;
  const char *extension = *in_extensions ? extension_of(line) : NULL;
  if (extension) return add_both(config, extension, LEAD_PATH);
  return line[0] == '#' || line[0] == ';' ? 0 : add_hgrc_words(config, line);
}

int guard_read_hgrc(struct guard *guard, const char *at, const char *base) {
  struct config config = {.guard = guard, .base = base};
  size_t size;
  directory_of(at, config.directory);
  char *text = read_text(guard, at, &size), *saved = NULL;
  if (!text && (errno == EISDIR || errno == ENOENT || errno == ENOTDIR)) return 0;
  if (text) text[size] = 0; /* read_all has room for it */
  int done = text && memchr(text, 0, size) ? (errno = EBADMSG, -1) : text ? 0 : -1, in_extensions = 0, error = errno;
  for (char *line = text && done == 0 ? strtok_r(text, "\n", &saved) : NULL; line && done == 0; line = strtok_r(NULL, "\n", &saved))
    if ((done = on_hgrc_line(&config, line, &in_extensions)) < 0) error = errno;
  free(text);
  if (done < 0) copy_text(guard->failed, sizeof guard->failed, at);
  errno = error;
  return done;
}

int guard_add_hgrc(struct guard *guard, const char *path, const char *base) {
  int done = guard_read_hgrc(guard, path, base);
  return done < 0 && errno == ELOOP ? guard_add_lead(guard, &(struct guard_lead){"/", path, LEAD_HGRC, base}) : done;
}

/* ---- git ---- */

static int add_config(struct guard *guard, const char *base, const char *directory, const char *below) {
  char text[PATH_MAX];
  if ((size_t)snprintf(text, sizeof text, "%s/%s", directory, below) >= sizeof text) return copy_text(guard->failed, sizeof guard->failed, directory), errno = ENAMETOOLONG, -1;
  return guard_add_lead(guard, &(struct guard_lead){base, text, LEAD_CONFIG, base});
}

/* In a directory that the walk has found, so that only the file itself can be a link: one that is none needs not be followed. */
static int add_found(struct guard *guard, const char *base, const char *directory, const char *below) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", base, directory, below) >= sizeof path) return errno = ENAMETOOLONG, -1;
  int done = guard_read_config(guard, path, base);
  return done < 0 && errno == ELOOP ? add_config(guard, base, directory, below) : done;
}

/* The one line of a file such as `commondir`. "" = there is none. */
static int read_line(struct guard *guard, const char *path, const char *mark, char line[PATH_MAX]) {
  size_t size;
  line[0] = 0;
  char *text = read_text(guard, path, &size);
  if (!text) return errno == ENOENT || errno == ENOTDIR || errno == EISDIR ? 0 : -1;
  if (size > strlen(mark) && strncmp(text, mark, strlen(mark)) == 0) {
    const char *begin = text + strlen(mark);
    size_t length = strnlen(begin, size - strlen(mark));
    while (length > 0 && (begin[length - 1] == '\n' || begin[length - 1] == '\r')) length--;
    snprintf(line, PATH_MAX, "%.*s", (int)length, begin);
  }
  free(text);
  return 0;
}

typedef int add_function(struct guard *guard, const char *base, const char *directory, const char *below);

/* `directory` is as it is written: from `base`, or absolute. */
static int add_directory(struct guard *guard, const char *base, const char *directory, add_function *add) {
  char path[PATH_MAX], common[PATH_MAX];
  const char *from = directory[0] == '/' ? "" : base;
  if ((size_t)snprintf(path, sizeof path, "%s%s%s/commondir", from, from[0] ? "/" : "", directory) >= sizeof path) return errno = ENAMETOOLONG, -1;
  if (read_line(guard, path, "", common) < 0) return copy_text(guard->failed, sizeof guard->failed, path), -1;
  if (common[0] && common[0] != '/') {
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, common) >= sizeof path) return errno = ENAMETOOLONG, -1;
    copy_text(common, sizeof common, path);
  }
  if (common[0] && add_config(guard, base, common, "config") < 0) return -1;
  return add(guard, base, directory, "config") < 0 || add(guard, base, directory, "config.worktree") < 0 ? -1 : 0;
}

/* Of the user and of the machine: git-config(1), "FILES". */
static int add_common(struct guard *guard, const char *base) {
  static const struct {
    const char *name, *file;
  } OF_USER[] = {{".gitconfig", ".gitconfig"}, {".config/git", ".config/git/config"}};
  char path[PATH_MAX];
  if (!guard->home) return 0;
  for (int i = 0; i < 2; i++) {
    if (!guard_is_in_homes(guard, OF_USER[i].name)) continue; /* --protect-not */
    if ((size_t)snprintf(path, sizeof path, "%s/%s", guard->home, OF_USER[i].file) >= sizeof path) return errno = ENAMETOOLONG, -1;
    if (guard_add_lead(guard, &(struct guard_lead){"/", path, LEAD_CONFIG, base}) < 0) return -1;
  }
  return guard_add_lead(guard, &(struct guard_lead){"/", "/etc/gitconfig", LEAD_CONFIG, base});
}

int guard_add_configs(struct guard *guard, const char *path, enum find_kind kind, mode_t type) {
  char base[PATH_MAX], line[PATH_MAX];
  copy_text(base, sizeof base, path);
  if (kind != FIND_BARE) directory_of(path, base);
  if (add_common(guard, base) < 0) return -1;
  if (kind == FIND_BARE) return add_directory(guard, path, ".", add_found);
  if (S_ISDIR(type)) return add_directory(guard, base, ".git", add_found);
  if (S_ISLNK(type)) return add_directory(guard, base, ".git", add_config);
  if (!S_ISREG(type)) return 0;
  if (read_line(guard, path, "gitdir: ", line) < 0) return copy_text(guard->failed, sizeof guard->failed, path), -1;
  return line[0] ? add_directory(guard, base, line, add_config) : 0;
}
