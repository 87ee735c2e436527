#!/bin/sh
# What `llm-do` and `llm-do-exec` are where native/client/main.c is not: in npm's package, and on other systems than Linux.
#
# On Linux this becomes the client, which is in a package of its own for each machine, and it starts no program on the way there: a
# fork takes longer than the client does. Elsewhere it starts node.
#
# Node reads some options of its own wherever they stand among its words, and its variables and directory decide what code it
# loads. So each word goes behind a `=`, each variable of the caller behind LLM_DO_KEPT_, and node starts in the package's directory
# with nothing else; src/cli/call.ts puts it together again. Variables of this script begin with `_`, so that none is a caller's.
# A variable whose name is no word of a shell is lost.

_name=@NAME@

# Never returns where DIRECTORY, taken for this package's, has the client installed in it or beside it.
_become_client() { # DIRECTORY WORDS...
  for _native in "$1/node_modules/@llm-do/$_machine" "$1/../@llm-do/$_machine"; do
    if [ -x "$_native/bin/$_name" ]; then shift && exec "$_native/bin/$_name" "$@"; fi
  done
}

_machine=
if [ -e /proc/sys/kernel/ostype ]; then
  read -r _machine 2>/dev/null </proc/sys/kernel/arch || _machine=$(command -p uname -m)
  case $_machine in x86_64) _machine=exec-linux-x64 ;; *) _machine=exec-linux-arm64 ;; esac
fi
# Where npm's links to this file are, seen from them. That it is this file and no other of the same name decides.
if [ -n "$_machine" ]; then
  for _root in "${0%/*}/.." "${0%/*}/../llm-do-exec" "${0%/*}/../lib/node_modules/llm-do-exec"; do
    if [ "$_root/bin/$_name" -ef "$0" ] 2>/dev/null; then _become_client "$_root" "$@"; fi
  done
fi

_path=${PATH-}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
_here=$(pwd -P && echo .) _here=${_here%??}

_refuse() {
  echo "llm-do: error SETUP_FAILED: $1" >&2
  echo "llm-do: hint: $2" >&2
  exit 125
}

# Canonical directories that the words name, by themselves or as a part: `--rw=DIR`, `name=DIR:rw`. One a line.
_named() {
  unset CDPATH
  set -f
  for _word; do
    [ "$_word" != -- ] || return 0
    IFS='=:,'
    for _piece in "$_word" $_word; do
      [ -n "$_piece" ] && [ "$_piece" != / ] && [ -d "$_piece" ] && (cd -P "$_piece/" && pwd -P)
    done
  done 2>/dev/null
}

# Whether a command in a sandbox may have made what is there. The system's own directories cannot be written by users.
_is_planted() {
  case $1 in /usr/local/sbin | /usr/local/bin | /usr/sbin | /usr/bin | /sbin | /bin) return 1 ;; esac
  [ "$_here" = / ] || case $1/ in "$_here"/*) return 0 ;; esac
  IFS='
'
  for _place in $_places; do
    case $1/ in "$_place"/*) return 0 ;; esac
  done
  return 1
}

# The file at the end of the links, by a canonical path: sets _real.
_follow() {
  _real=$1 _steps=0
  while [ -h "$_real" ]; do
    _steps=$((_steps + 1))
    [ "$_steps" -le 40 ] || return 1
    _link=$(readlink "$_real" && echo .) || return 1
    _link=${_link%??}
    case $_link in /*) _real=$_link ;; *) _real=${_real%/*}/$_link ;; esac
  done
  _directory=$(unset CDPATH && cd -P "${_real%/*}/" 2>/dev/null && pwd -P) || return 1
  _real=${_directory%/}/${_real##*/}
}

# Root's or the caller's, and no other user may write to it. Windows has other rules, which find(1) does not know.
_is_trusted() {
  [ -f "$1" ] && [ -x "$1" ] || return 1
  case $(uname -s) in MINGW* | MSYS* | CYGWIN*) return 0 ;; esac
  [ -n "$(find "$1" -prune \( -user 0 -o -user "$(id -u)" \) ! -perm -0020 ! -perm -0002 2>/dev/null)" ]
}

# The node that installed the package, else the first one on the caller's PATH: sets _real.
_find_node() {
  if read -r _recorded 2>/dev/null <"$_root/dist/node-path" && _follow "$_recorded" && _is_trusted "$_real"; then return 0; fi
  set -f
  IFS=:
  for _entry in $_path; do
    case $_entry in /*) ;; *) continue ;; esac
    [ -f "$_entry/node" ] && _follow "$_entry/." || continue
    if _is_planted "$_entry" || _is_planted "${_real%/.}"; then continue; fi
    _follow "$_entry/node" || continue
    if _is_planted "${_real%/*}" || ! _is_trusted "$_real"; then continue; fi
    return 0
  done
  return 1
}

_follow "$0" || _refuse "$0: its directory cannot be told" "start it by its path"
_root=${_directory%/*}
# In a checkout the client stands in the place of this script, and where it does not, somebody wants it so.
if [ -n "$_machine" ] && [ ! -e "$_root/bin/init" ]; then
  PATH=$_path _become_client "$_root" "$@"
  _refuse "the programs for this machine are not installed: npm package @llm-do/$_machine" \
    "npm install llm-do-exec --include=optional, without --no-optional, --omit=optional and --force"
fi
_places=$(_named "$@")
_node=$(_find_node && printf %s. "$_real") ||
  _refuse "no node that only root or you can change is on PATH outside this directory and the paths of the command line" \
    "put node 20.19 or newer into an absolute directory of PATH outside the project"
_node=${_node%.}
case $_node in *=*) _refuse "$_node: env(1) takes a path with '=' for a variable" "put node into another directory" ;; esac

for _word; do
  set -- "$@" "=$_word"
  shift
done
set -- "$_node" "@NODE_WITHOUT_DEBUGGER@" "$_root/dist/cli.cjs" @FIRST@ "$@"
# A line of a value may look like a variable: only what is set counts.
for _name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
  eval "_value=\${$_name-} _set=\${$_name+set}"
  [ "$_name" != PATH ] || _value=$_path
  [ "$_set" != set ] || set -- "LLM_DO_KEPT_$_name=$_value" "$@"
done
cd "$_root" || _refuse "$_root: cannot be entered" "ls -ld $_root"
exec env -i "PATH=$PATH" LLM_DO_CALL=argv "LLM_DO_DIRECTORY=$_here" "$@"
