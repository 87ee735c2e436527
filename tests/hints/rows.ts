/**
 * The table of walls: what refuses a command, what is said of it, and what lets the command succeed. ROWS are command lines of bash that
 * start in an empty directory next to a new home (hints.system.test.ts); DENIALS are commands of which the result has a denial
 * (denials.system.test.ts).
 */
import type { ErrorCode } from '../../src/error.ts'
import type { Denial } from '../../src/report/result.ts'
import type { Need } from '../support/needs.ts'
import { currentUser, type User } from '../support/users.ts'
import { addFlags, doFirst, doInstead, type Follow, insteadOf, without } from './follow.ts'

export interface Row {
  readonly needs?: readonly Need[]
  /** Only as these. */
  readonly as?: readonly User[]
  readonly make?: string
  /** Mounts that both runs need; made as root only. */
  readonly mounts?: string
  readonly provoke: string
  /** The message; the test follows its group. */
  readonly said: RegExp
  /** The key of the denial that is followed. */
  readonly key?: string
  /** The code of the error; a hint after a run has none. */
  readonly code?: ErrorCode
  /** Gives its flags to the command line that failed, where nothing else is said. */
  readonly follow?: Follow
  /** Of the output in the end. */
  readonly shows?: RegExp
  /** Where following cannot end in success here: what must not be said any more. */
  readonly gone?: RegExp
}

type Rows = Readonly<Record<string, Row>>

const rowsFor = <Value>(values: readonly Value[], row: (value: Value) => readonly [title: string, Row]): Rows =>
  Object.fromEntries(values.map(row))

const ROOT: readonly User[] = ['root']
const PLAIN: readonly User[] = ['plain']
/** Of the installation: others have no id in its user namespaces. A plain user whom root starts has root's. */
const OWNER: readonly User[] = process.env.LLM_DO_TEST_ROOT_STAGE === undefined ? [currentUser()] : []

const HINT = /hint: (.*)/

/* ---- what is visible ---- */

const TOOL = `
  mkdir -p ../tools/bin ../tools/lib/tool
  printf '#!/bin/sh\\n. "$(dirname "$(readlink -f "$0")")/said"\\n' > ../tools/lib/tool/run
  echo 'echo "of the tool: $*"' > ../tools/lib/tool/said
  chmod +x ../tools/lib/tool/run; ln -s ../lib/tool/run ../tools/bin/tool`

/** A shell in the place of an interpreter, with its library next to it. */
const INTERPRETER = `
  mkdir -p ../odd/bin ../odd/lib
  printf '#!/bin/sh\\n. "\${0%%/bin/*}/lib/start"\\n' > ../odd/bin/odd; chmod +x ../odd/bin/odd
  echo 'sed 1d "$1"' > ../odd/lib/start`

const VISIBLE: Rows = {
  'a path of the workspace by the place it has inside': {
    make: 'echo seen > file',
    provoke: 'llm-do exec --ro .:/data -- cat "$PWD/file"',
    said: /is (\/data\/file) in the sandbox$/m,
    follow: (script, hint) => script.replace('"$PWD/file"', hint),
    shows: /^seen$/m,
  },
  'a file outside of every zone': {
    make: 'echo seen > "../it\'s here"',
    provoke: 'llm-do exec -- cat "$(dirname "$PWD")/it\'s here"',
    said: /not visible in the sandbox; to show it: (.*)/,
    shows: /^seen$/m,
  },
  "a program of the caller's PATH, with what lies beside it": {
    code: 'COMMAND_NOT_FOUND',
    make: TOOL,
    provoke: 'PATH=$PATH:$(dirname "$PWD")/tools/bin; llm-do exec -- tool here',
    said: /is not visible inside; to show it: (.*)/,
    shows: /of the tool: here/,
  },
  'a script whose interpreter is outside': {
    make: `${INTERPRETER}; printf '#!%s/odd/bin/odd\\nof the script\\n' "$(dirname "$PWD")" > script; chmod +x script`,
    provoke: 'llm-do exec --ro . -- ./script',
    said: /its first line names .*; to show it: (.*)/,
    shows: /of the script/,
  },
  'a directory that is not shown of itself': {
    provoke: 'cd ../home; echo seen > file; llm-do exec -- cat file',
    said: /is the home directory and is not shown; \/workspace is empty\. To show files: (.*)/,
    shows: /^seen$/m,
  },
}

/* ---- what cannot be run ---- */

const NOT_RUN: Rows = {
  'a word of bash in a script of sh': {
    make: 'echo "export SEEN=seen" > vars; test "$(readlink /bin/sh)" != bash',
    provoke: 'llm-do exec -c \'source ./vars; echo $SEEN; test -n "$SEEN"\'',
    said: /hint: source is a word of bash, .*: (-lc) in the place of -c/,
    follow: (script, hint) => script.replace(' -c ', ` ${hint} `),
    shows: /^seen$/m,
  },
  'a cache below a home that is read-only': {
    code: 'ZONE_INVALID',
    as: ROOT,
    mounts: 'mkdir ../fixed; mount -t tmpfs -o ro none ../fixed',
    provoke: 'HOME=$(dirname "$PWD")/fixed llm-do exec --cache npm -- true',
    said: /cannot be made: .*\n.*hint: (HOME)=DIRECTORY \(writable\)/,
    follow: (script) => script.replace('/fixed', '/home'),
  },
  'a file without the execute bit': {
    code: 'COMMAND_NOT_EXECUTABLE',
    make: 'printf "#!/bin/sh\\necho ran\\n" > script',
    provoke: 'llm-do exec -- ./script',
    said: /hint: give it the execute bit \((chmod \+x)\)/,
    follow: (script, hint) => doFirst(script, `${hint} ./script`),
    shows: /^ran$/m,
  },
  'a WASI module': {
    make: `printf '\\0asm\\1\\0\\0\\0\\1\\4\\1\\140\\0\\0\\3\\2\\1\\0\\5\\3\\1\\0\\1\\7\\23\\2\\6memory\\2\\0\\6_start\\0\\0\\12\\4\\1\\2\\0\\13' > tool.wasm`,
    provoke: 'llm-do exec --backend namespace -- ./tool.wasm',
    said: /hint: (--backend wasm)/,
    follow: insteadOf('--backend namespace'),
  },
  'an option that does not exist': {
    code: 'USAGE',
    provoke: 'llm-do exec --memry 1g -- true',
    said: HINT,
    follow: (_, hint) => hint,
    shows: /--memory/,
  },
  "a port of this host's loopback": {
    code: 'POLICY_INVALID',
    provoke: 'llm-do exec --allow-host 127.0.0.1:8080 -- true',
    said: /or a port of this host \((--allow-host localhost:8080)\)/,
    follow: insteadOf('--allow-host 127.0.0.1:8080'),
  },
  'a workshop that is here': {
    code: 'POLICY_ESCALATION',
    make: 'llm-do init',
    provoke: 'llm-do exec --worker helper -- ls',
    said: /hint: llm-do exec (--workshop workshop\.yaml)/,
    follow: addFlags,
    shows: /^workshop\.yaml$/m,
  },
  'a value that looks like an option': {
    provoke: 'llm-do exec --plan --why --memory -- true',
    said: /hint: (--why=--memory)/,
    follow: (script, hint) => script.replace('--why --memory', hint),
    shows: /resources\.memory/,
  },
  'a profile that cannot be parsed': {
    code: 'PROFILE_UNREADABLE',
    make: "printf 'sandbox: [' > p.yaml",
    provoke: 'llm-do exec --profile ./p.yaml -- true',
    said: /hint: (llm-do profiles show default)/,
    follow: (script, hint) => `${hint} > p.yaml\n${script}`,
  },
}

/* ---- zones ---- */

/** The state directory of a plain user. */
const OPEN_STATE = 'mkdir -p ../home/.local/state/llm-do; chmod 755 ../home/.local/state/llm-do'

const ZONES: Rows = {
  'a kept home below a directory that is open to others': {
    code: 'ZONE_INVALID',
    as: PLAIN,
    make: OPEN_STATE,
    provoke: 'llm-do exec --home agent -- true',
    said: /hint: (chmod 700 \S+)$/m,
    follow: doFirst,
  },
  ...rowsFor(['--ro', '--rw', '--cow'], (flag) => [
    `${flag} of a directory that does not exist`,
    {
      provoke: `llm-do exec ${flag} "$PWD/no such place" -- true`,
      said: /it does not exist; make it \((.*?)\), or/,
      follow: doFirst,
    },
  ]),
  ...rowsFor([/have it made: (--\w+ .*?), or/, /leave it out: (--\w+ .*)/], (said) => [
    `a zone that does not exist, by what the message says: ${said.source.slice(0, 8)}`,
    {
      provoke: 'llm-do exec --ro "no such place" -- true',
      said,
      follow: insteadOf('--ro "no such place"'),
      shows: /^$/,
    },
  ]),
  ...rowsFor(['--ro', '--rw'], (flag) => [
    `${flag} of a socket`,
    {
      needs: ['python'],
      make: `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")'`,
      provoke: `llm-do exec ${flag} s -- true`,
      said: /it is a socket, .* if that is meant: (--socket \S*),/,
      follow: insteadOf(`${flag} s`),
    },
  ]),
  'something made at a protected name': {
    provoke: 'llm-do exec --rw . -- sh -c "mkdir .vscode; sleep 9"',
    said: /hint: to allow it: (.*)/,
    follow: (script, hint) => addFlags(script.replace('; sleep 9', ''), hint),
  },
  'the same, kept for a look first': {
    provoke: 'llm-do exec --rw . -- sh -c "mkdir .vscode; sleep 1; echo end"',
    said: /hint: to let it end and decide by llm-do apply, in the place of --rw: (.*)/,
    follow: insteadOf('--rw .'),
    shows: /^end$/m,
  },
  'what is taken back when a program outside made it': {
    provoke: 'llm-do exec --rw . -- sh -c "touch .envrc; sleep 9"',
    said: /hint: if a program outside the sandbox made it meanwhile: (mv .*)/,
    follow: (_, hint) => `${hint} && ls .envrc`,
    shows: /^\.envrc$/m,
  },
  'a directory that is too deep to be looked at': {
    make: 'mkdir -p z/out; cd z; d=$(printf %0200d 0); for i in $(seq 25); do mkdir $d; cd $d; done',
    provoke: 'llm-do exec --rw z -- touch /workspace/z/out/made',
    said: /hint: (name the directories that the command needs to write one by one)$/m,
    // Node cannot remove such a directory.
    follow: (script) => `${script.replace('--rw z ', '--rw z/out:/workspace/z/out ')}; s=$?; rm -rf z; exit $s`,
  },
  'a file with a set-id bit as a writable zone of root': {
    code: 'SETUP_FAILED',
    as: ROOT,
    make: 'cp /bin/true program; chmod u+s program',
    provoke: 'llm-do exec --rw program -- true',
    said: /hint: (--ro \S*);/,
    follow: insteadOf('--rw program'),
  },
}

/* ---- copy-on-write ---- */

const COPIES: Rows = {
  'changes that take more than they may': {
    key: 'cow.size',
    provoke: 'llm-do exec --cow . --cow-size 1m -- sh -c "head -c 1500k /dev/zero > file; sleep 1"',
    said: /raise --cow-size or cow\.size, for example (.*)/,
    follow: insteadOf('--cow-size 1m'),
  },
  'writable zones that grow by more than they may': {
    key: 'resources.rwSize',
    provoke: 'llm-do exec --rw . --rw-size 1m -- sh -c "head -c 1500k /dev/zero > file"',
    said: /raise --rw-size or resources\.rwSize, for example (.*)/,
    follow: insteadOf('--rw-size 1m'),
  },
  'a copy that takes more than the changes may': {
    make: 'head -c 2m /dev/zero > file',
    provoke: 'llm-do exec --cow . --cow-upper copy --cow-size 1m -- true',
    said: /hint: (--cow-size none),/,
    follow: insteadOf('--cow-size 1m'),
  },
  'a renamed directory': {
    as: PLAIN,
    make: 'mkdir old; touch old/file',
    provoke: `llm-do exec --json --cow . -- perl -e 'rename("old", "new") or die "$!\\n"'`,
    said: /in the place of --cow: ([^"]*)/,
    follow: insteadOf('--cow .'),
  },
  'a mount below the directory': {
    as: ROOT,
    make: 'mkdir -p z/sub',
    mounts: 'mount -t tmpfs none z/sub',
    provoke: 'llm-do exec --cow z -- true',
    said: /hint: (umount \S*);/,
    follow: doFirst,
  },
  "root's own directory on an overlay, as in a container": {
    as: ROOT,
    mounts: `mkdir -p ../overlay; mount -t tmpfs none ../overlay; mkdir ../overlay/lower ../overlay/upper ../overlay/work
      mount -t overlay -o lowerdir=../overlay/lower,upperdir=../overlay/upper,workdir=../overlay/work none "$PWD"; cd "$PWD"`,
    provoke: 'llm-do exec --cow . -- touch made',
    said: /hint: (--cow \S+ --cow-upper copy), which/,
    follow: insteadOf('--cow .'),
    shows: /1 added/,
  },
  'nothing that waits': {
    code: 'LAYER_NOT_FOUND',
    provoke: 'llm-do changes',
    said: /hint: (llm-do ps --cow)/,
    follow: (_, hint) => hint,
    shows: /^ID .* DIRECTORY$/m,
  },
}

/* ---- limits ---- */

const LIMITS: Rows = {
  'time of processors': {
    provoke: `llm-do exec --cpu-time 1s -- perl -e '@t = times until $t[0] + $t[1] > 1.4'`,
    said: /raise --cpu-time or resources\.cpuTime, for example (.*)/,
    follow: insteadOf('--cpu-time 1s'),
  },
  processes: {
    key: 'resources.pids',
    provoke: `llm-do exec --pids 8 -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait'`,
    said: /raise --pids or resources\.pids, for example (.*)/,
    follow: insteadOf('--pids 8'),
  },
  'what Python had in its buffer': {
    provoke: `llm-do exec --json --timeout 2s -- python3 -c 'print("kept"); import time; time.sleep(60)'`,
    said: /lost in its buffer: ([^"]*)/,
    follow: addFlags,
    gone: /buffer/,
  },
  'what Python had in its buffer, in a pipe': {
    provoke: `llm-do exec --timeout 2s -- python3 -c 'print("kept"); import time; time.sleep(60)' | cat`,
    said: /lost in its buffer: (.*)/,
    follow: addFlags,
    gone: /buffer/,
  },
  output: {
    provoke: 'llm-do exec --json --output 1k -- head -c 1500 /dev/zero',
    said: /raise --output or resources\.output, for example ([^"]*)/,
    follow: insteadOf('--output 1k'),
    gone: /raise --output/,
  },
}

/* ---- system calls, backends ---- */

const CALL_OF_32_BITS = `printf '%s\\n' 'int main(void) { long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); return 0; }' > p.c; gcc -o p p.c`

const CHROOT =
  'mkdir -p root/{usr,etc,proc,sys,tmp,dev,run,app,work}; for d in bin lib lib64 sbin; do ln -s usr/$d root/$d; done'
const CHROOT_MOUNTS = `for d in usr etc dev; do mount --bind /$d root/$d; done; mount -t proc none root/proc
  mount -t tmpfs none root/tmp; mount -t tmpfs none root/run; mount --bind "$CHECKOUT" root/app; PATH=/app/bin:$PATH; HOME=/work`

const WALLS: Rows = {
  'a 32-bit system call': {
    needs: ['gcc', 'foreign-calls'],
    as: PLAIN,
    make: CALL_OF_32_BITS,
    provoke: 'llm-do exec -- ./p',
    said: /stops 32-bit programs and system calls; to let them run, .*: (--seccomp off)/,
  },
  'a run without walls': {
    provoke: 'llm-do exec --backend process -- true',
    said: /hint: (LLM_DO_ALLOW_UNSANDBOXED=1 llm-do exec) --backend process \.\.\./,
    follow: (script, hint) => script.replace('llm-do exec', hint),
  },
  'copy-on-write where no layer can be': {
    code: 'NO_BACKEND',
    provoke: 'llm-do exec --backend wasm --cow . -- true',
    said: /hint: (--backend namespace), or/,
    follow: insteadOf('--backend wasm'),
  },
  'a sandbox with namespaces inside a sandbox': {
    provoke: 'llm-do exec --ro "$CHECKOUT" -- "$CHECKOUT/bin/llm-do" exec --backend namespace -- true',
    said: /hint: llm-do exec (--backend no-namespaces) \.\.\./,
    follow: (script, hint) => script.replace('--backend namespace', hint),
  },
  'a user namespace without the ids of the caller': {
    needs: ['userns'],
    as: OWNER,
    provoke: 'unshare --user llm-do exec -- true',
    said: /hint: in the place of the unshare around it: (unshare --user --map-user=1000 --map-group=1000 llm-do exec \.\.\.)/,
    follow: doInstead,
  },
  'an installation of a user who has no id in the user namespace': {
    needs: ['userns'],
    as: ROOT,
    make: 'mkdir install; cp -r "$CHECKOUT"/{bin,dist,profiles,package.json,node_modules} install; chown -R 65532 install; chmod -R go-w install; chmod 755 ..',
    provoke: 'unshare --user --map-user=1000 --map-group=1000 install/bin/llm-do exec -- true',
    said: /belongs to a user who has no id in this user namespace[\s\S]*hint: .*, or a copy of your own: (cp -r \S+) COPY/,
    follow: (script, hint) => `${hint} copy; ${script.replace('install/bin', 'copy/bin')}`,
  },
  'a chroot': {
    as: ROOT,
    make: CHROOT,
    mounts: CHROOT_MOUNTS,
    provoke: 'chroot root llm-do exec -- true',
    said: /this is a chroot[\s\S]*hint: from outside: sudo (unshare .*'); or/,
    follow: (script, hint) => doInstead(script, hint.replaceAll('DIR', 'root')),
  },
}

/* ---- the network ---- */

const DENIED = /denied: resolve/

const NETWORK: Rows = {
  'a name without any network': {
    key: 'network.allow',
    provoke: 'llm-do exec -- getent hosts a.test',
    said: /denied: resolve a\.test.*; to allow it: (.*)/,
    gone: DENIED,
  },
  'a name that is denied': {
    key: 'network.deny',
    provoke: `llm-do exec --allow-host '*.test' --deny-host b.test -- getent hosts b.test`,
    said: /denied: resolve b\.test.*; to allow it: take back (--deny-host b\.test)/,
    follow: (script, hint) => without(hint)(script, hint),
    gone: DENIED,
  },
  'a secret zone and a network': {
    make: `mkdir z; printf 'sandbox:\\n  extends: default\\n  network: { afterSecrets: deny }\\n  zones:\\n    - { name: z, hostPath: ./z, secret: true }\\n' > p.yaml`,
    provoke: 'llm-do exec --profile ./p.yaml --net host -- true',
    said: /hint: leave out --net, or say (--after-secrets allow)/,
  },
  'a secret without an end of TLS': {
    make: `printf 'sandbox:\\n  extends: default\\n  network:\\n    mode: restricted\\n    allow: [a.test]\\n    credentials:\\n      - { host: a.test, header: x-key, from: "env:KEY" }\\n' > p.yaml`,
    provoke: 'export KEY=k; llm-do exec --profile ./p.yaml -- true',
    said: /expected network\.terminate: true \((--terminate-tls)\)/,
  },
}

/** Another server is asked for its port first. */
const SERVE = `node -e 'const s = require("net").createServer((c) => c.end("served\\n")).listen(0, "127.0.0.1", () =>
  require("fs").writeFileSync("port", String(s.address().port)))' & until test -s port; do sleep 0.05; done; PORT=$(cat port)`

const LOCAL: Rows = {
  'a server of this host, at the loopback of the sandbox': {
    provoke: `${SERVE}; llm-do exec -- bash -c "exec 3<>/dev/tcp/localhost/$PORT; cat <&3"; s=$?; kill $!; rm port; exit $s`,
    said: /to reach the host's: (--allow-host localhost):\d+$/m,
    follow: (script, hint) => script.replace('llm-do exec', `llm-do exec ${hint}:$PORT`),
    shows: /^served$/m,
  },
}

/** The port is allowed, and the name is that of the sandbox. */
const BY_NAME: Rows = {
  'a server of this host, at the loopback, with its port allowed': {
    provoke: `${SERVE}; llm-do exec --allow-local $PORT -- bash -c "exec 3<>/dev/tcp/localhost/$PORT; cat <&3"; s=$?; kill $!; rm port; exit $s`,
    said: /port \d+ of this host is (host\.llm-do\.internal):\d+ inside, not localhost$/m,
    follow: (script, hint) => script.replace('localhost', hint),
    shows: /^served$/m,
  },
}

/* ---- scratch ---- */

const AT_TERMINAL = (command: string) => `script -qec "${command}" /dev/null | tr -d '\\r'`

const SCRATCH: Rows = {
  'a file of the home that the output names': {
    provoke: `llm-do exec --json -c 'echo x > ~/report.txt; echo saved to ~/report.txt'`,
    said: /report\.txt is gone with the scratch \/home\/sandbox; to keep it: (--home kept), or/,
    follow: (script, hint) => `${addFlags(script, hint)} && llm-do exec ${hint} -c 'cat ~/report.txt'`,
    shows: /^x$/m,
    gone: /is gone/,
  },
  'a file of /tmp that the output names': {
    provoke: `llm-do exec --json -c 'echo x > /tmp/report.txt; echo wrote /tmp/report.txt >&2'`,
    said: /\/tmp\/report\.txt is gone with the scratch \/tmp; to keep it: (--rw \.) and a path below \/workspace/,
    follow: (script, hint) => `${addFlags(script, hint).replaceAll('/tmp/', '/workspace/')} && cat report.txt`,
    shows: /^x$/m,
    gone: /is gone/,
  },
  'a file of /tmp that only the command names': {
    needs: ['gcc'],
    make: `echo 'int main(void) { return 0; }' > p.c`,
    provoke: AT_TERMINAL('llm-do exec -- gcc -o /tmp/p p.c'),
    said: /\/tmp\/p is gone with the scratch \/tmp; to keep it: (--rw \.) and a path below \/workspace/,
    follow: (script, hint) => `${addFlags(script, hint).replaceAll('/tmp/', '/workspace/')} && ./p && echo ran`,
    shows: /^ran$/m,
    gone: /is gone/,
  },
}

/* ---- workers, logs ---- */

const READER = `printf -- '---\\nname: w\\ndescription: Reads.\\ntoolsets:\\n  shell:\\n    rules:\\n      - { pattern: ls, approval: preApproved }\\n      - { pattern: cat, approval: preApproved }\\n      - { pattern: wc, approval: ask }\\n---\\nRead.\\n' > w.worker`

const WORKERS: Rows = {
  'a pipe in the text of -c': {
    code: 'COMMAND_BLOCKED',
    make: READER,
    provoke: "llm-do exec --worker w -c 'ls | cat'",
    said: /hint: (--allow-shell-syntax) /,
    shows: /^w\.worker$/m,
  },
  'a question without a terminal': {
    make: READER,
    provoke: 'setsid -w llm-do exec --worker w -- wc -l w.worker',
    said: /or answer with (--approval approve_all), or/,
  },
}

/* ---- what a name leads to, and where a result goes ---- */

/** Others run at the same time. */
const NAME = 'N=$(basename "$(dirname "$PWD")" | tr A-Z a-z)'

const NAMES: Rows = {
  'a profile that nearly has this name': {
    code: 'PROFILE_NOT_FOUND',
    provoke: 'llm-do exec --profile buld -- true',
    said: /Did you mean "(build)"/,
    follow: (script, hint) => script.replace('buld', hint),
  },
  'profiles in a circle': {
    code: 'PROFILE_CYCLE',
    make: `printf 'sandbox: { extends: ./b.yaml }\n' > a.yaml; printf 'sandbox: { extends: ./a.yaml }\n' > b.yaml`,
    provoke: 'llm-do exec --profile ./a.yaml -- true',
    said: /take "extends" out of one of: \S+, (\S+)$/m,
    follow: (script, hint) => `sed -i 's/extends: [^ ]*//' ${hint}; ${script}`,
  },
  'a worker that is not there': {
    code: 'WORKER_NOT_FOUND',
    make: READER,
    provoke: 'llm-do exec --worker nosuch -- ls',
    said: /hint: (llm-do workers list)$/m,
    follow: (script, hint) => `w=$(${hint} | awk '{ print $1; exit }'); ${script.replace('nosuch', '"$w"')}`,
    shows: /^w\.worker$/m,
  },
  'a worker that cannot be read': {
    code: 'WORKER_INVALID',
    make: 'echo Read. > w.worker',
    provoke: 'llm-do exec --worker w -- ls',
    said: /hint: (llm-do workers check) /,
    follow: (script, hint) => `${hint} | grep -q 'w.worker:1: ' && ${READER}; ${script}`,
    shows: /^w\.worker$/m,
  },
  'a full place for the result': {
    code: 'OUTPUT_FAILED',
    provoke: 'llm-do exec --json -- true >/dev/full',
    said: /hint: (look at where stdout leads)$/m,
    follow: without('>/dev/full'),
    shows: /"ok":true/,
  },
  'a name that is taken': {
    code: 'SANDBOX_EXISTS',
    as: ROOT,
    make: `${NAME}; llm-do run --name "$N" -- sleep 60`,
    provoke: `${NAME}; llm-do run --name "$N" -- true`,
    said: /hint: (llm-do stop \S+), /,
    follow: (script, hint) => `${hint}; ${script} && ${hint}`,
  },
  'a sandbox that is not there': {
    code: 'SANDBOX_NOT_FOUND',
    as: ROOT,
    provoke: 'llm-do exec --in no-such-sandbox -- true',
    said: /hint: (llm-do ps), /,
    follow: (_, hint) => hint,
    shows: /^ID .* COMMAND$/m,
  },
  'a failed run that is not known': {
    code: 'RUN_NOT_FOUND',
    provoke: 'llm-do why no-such-run',
    said: /hint: (llm-do why --list), /,
    follow: (_, hint) => hint,
  },
}

export const ROWS = Object.entries<Row>({
  ...VISIBLE,
  ...NOT_RUN,
  ...ZONES,
  ...COPIES,
  ...LIMITS,
  ...WALLS,
  ...NETWORK,
  ...LOCAL,
  ...BY_NAME,
  ...SCRATCH,
  ...WORKERS,
  ...NAMES,
}).map(([title, row]) => ({ title, ...row }))

/* ---- denials: the command runs in `work`, and `library` lies next to it ---- */

export interface DenialRow {
  readonly what: string
  readonly flags?: readonly string[]
  /** For a shell, or the words of a command. */
  readonly script: string | readonly string[]
  readonly denial: Partial<Denial>
  /** The fix takes the place of the row's flags. */
  readonly replaces?: boolean
  /** Where the command runs, instead of `work`. */
  readonly at?: string
  /** Also found with --explain, which reads no stderr; or only so. */
  readonly watched?: true | 'only'
}

const writes = (what: string, script: string, target: string): DenialRow => ({
  what,
  script,
  denial: { layer: 'mount', operation: 'write', target, fix: '--rw .', key: 'zones' },
  watched: true,
})
const guarded = (what: string, script: string, name: string): DenialRow => ({
  what,
  script,
  flags: ['--rw', '.'],
  denial: { layer: 'guard', fix: `--protect-not ${name}`, key: 'protectNot' },
})
const fills = (directory: string, mebibytes: number, fix: string, key: string): DenialRow => ({
  what: `a full ${directory}`,
  script: `dd if=/dev/zero of=${directory}/full bs=1M count=${mebibytes}`,
  denial: { layer: 'limit', operation: 'write', target: directory, fix, key, evidence: 'sandbox' },
})

const hidden = (what: string, script: string, [target, fix]: readonly [string, string], at = PACKAGE): DenialRow => ({
  what,
  script,
  at,
  denial: { layer: 'mount', operation: 'read', target, fix, evidence: 'stderr' },
})
const closed = (
  what: string,
  flags: readonly string[],
  [script, target, fix]: readonly [string, string, string],
): DenialRow => ({
  what,
  flags,
  script,
  denial: { layer: 'mount', operation: 'create', target: `${target} (socket or FIFO)`, fix, key: 'zones' },
  replaces: true,
})
export const BIND = `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'`

/** A package of a project with several. */
const PACKAGE = 'mono/packages/a'

const LED_OUT = (place: string): readonly DenialRow[] => [
  hidden('a name that climbs out', 'cat ../../base.json', [`${place}/mono/base.json`, `--ro ${place}/mono`]),
  {
    ...hidden('the same, of a silent command', 'exec 2>&-; cat ../../base.json', [
      `${place}/mono/base.json`,
      `--ro ${place}/mono`,
    ]),
    watched: 'only',
  },
  hidden('a name that a program has climbed', 'node climb.js', [`${place}/mono/base.json`, `--ro ${place}/mono`]),
  hidden('a module above the package', 'node module.js', [`${place}/mono/node_modules/dep`, `--ro ${place}/mono`]),
  hidden('a link to a directory elsewhere', 'cat far/data', [`${place}/library`, `--ro ${place}/library`]),
  hidden('a relative link out of the project', 'cat near', [
    `${place}/library/data`,
    `--same-path --ro ${place}/library/data`,
  ]),
  {
    ...hidden('the same, from a zone that was named', 'cat ../../base.json >made', [
      `${place}/mono/base.json`,
      `--rw ${place}/mono --workdir ${place}/mono/packages/a`,
    ]),
    flags: ['--rw', '.'],
  },
  hidden('a script that names its interpreter in the project', './tool', [`${place}/${PACKAGE}/bin/sh`, '--same-path']),
]

const SOCKETS = (place: string): readonly DenialRow[] => [
  closed('a socket in a writable zone', ['--rw', '.'], [BIND, '/workspace', `--rw ${place}/work:/workspace:sockets`]),
  closed(
    'a FIFO in a writable zone',
    ['--rw', '.'],
    ['mkfifo f', '/workspace/f', `--rw ${place}/work:/workspace:sockets`],
  ),
  closed(
    'a FIFO in the scratch above a writable zone',
    ['--rw', '.:/tmp/in/work'],
    ['mkfifo /tmp/f', '/tmp/f', `--rw ${place}/work:/tmp/in/work:sockets`],
  ),
]

export const DENIALS = (place: string): readonly DenialRow[] => [
  ...LED_OUT(place),
  ...SOCKETS(place),
  writes('a redirection of the shell', 'echo 1 > made', '/workspace/made'),
  writes('python', `python3 -c 'open("made", "w")'`, '/workspace/made'),
  writes('mkdir', 'mkdir made', '/workspace/made'),
  writes('rm', 'rm main.c', '/workspace/main.c'),
  { ...writes('mv', 'mv main.c other', '/workspace/main.c'), watched: 'only' },
  writes('git', 'git -C repository commit -q --allow-empty -m x', '/workspace/repository/.git/index.lock'),
  {
    what: 'a read-only zone next to the workspace',
    flags: ['--ro', `${place}/library:/library`],
    script: 'touch /library/made',
    denial: { operation: 'write', target: '/library/made', fix: `--rw ${place}/library:/library` },
    replaces: true,
    watched: true,
  },
  {
    what: 'a directory that the sandbox makes',
    flags: ['--ro', `${place}/library:/opt/library`],
    script: 'mkdir /opt/made',
    denial: { operation: 'write', target: '/opt/made', fix: '--tmpfs /opt' },
  },
  guarded('a settings directory', 'mkdir .vscode', '.vscode'),
  guarded('git init', 'git init -q .', '.git'),
  guarded(
    'git worktree add',
    // The first run may be stopped halfway, with the directory made.
    'rm -rf linked; cd repository; git worktree prune; git commit -q --allow-empty -m x; git worktree add -q --detach ../linked',
    '.git',
  ),
  { ...guarded('a hook', 'touch repository/.git/hooks/pre-commit', '.git/hooks'), watched: true },
  fills('/tmp', 60, '--tmp 100m', 'resources.tmp'),
  fills('/home/sandbox', 60, '--home 100m', 'resources.home'),
  fills('/run', 15, '--run 20m', 'resources.run'),
  fills('/dev/shm', 80, '--shm 128m', 'resources.shm'),
  {
    what: 'a full directory that was asked for',
    flags: ['--tmpfs', '/cache:1m'],
    script: 'dd if=/dev/zero of=/cache/full bs=64k count=20',
    denial: { operation: 'write', target: '/cache', fix: '--tmpfs /cache:2m', key: 'zones' },
    replaces: true,
  },
  {
    what: 'namespaces of its own',
    script: 'unshare --user --map-root-user true',
    denial: { layer: 'seccomp', operation: 'syscall', fix: '--seccomp nested', key: 'seccomp', evidence: 'stderr' },
  },
  {
    what: 'a tracer',
    flags: ['--seccomp', 'strict'],
    script: 'strace -o /dev/null true',
    denial: { layer: 'seccomp', target: 'ptrace', fix: '--seccomp default' },
    replaces: true,
  },
  {
    what: 'a file of the host',
    script: `cat ${place}/library/data`,
    denial: { operation: 'read', target: `${place}/library/data`, fix: `--ro ${place}/library/data`, key: 'zones' },
    watched: true,
  },
  {
    what: 'a program of the host',
    script: [`${place}/library/tool`],
    denial: { operation: 'execute', target: `${place}/library/tool`, fix: `--ro ${place}/library/tool`, key: 'zones' },
    watched: 'only',
  },
  {
    what: 'a new file in a directory of the host',
    script: `echo x >${place}/library/made`,
    denial: { operation: 'write', target: `${place}/library/made`, fix: `--rw ${place}/library`, key: 'zones' },
    watched: 'only',
  },
  {
    what: 'the path of the workspace on the host',
    script: `cat ${place}/work/main.c`,
    denial: { operation: 'read', target: `${place}/work/main.c`, fix: '--same-path', key: 'samePath' },
    watched: true,
  },
  {
    what: 'memory',
    flags: ['--memory', '48m'],
    script: `python3 -c 'import time; held = b"x" * (60 << 20); time.sleep(1)'`,
    denial: { layer: 'limit', operation: 'allocate', target: 'memory', fix: '--memory 96m', key: 'resources.memory' },
  },
]

/** Makes what the rows need, next to `work`. */
export const MAKE = `
  mkdir -p mono/packages/a mono/node_modules/dep python; cd mono
  echo '{ "workspaces": ["packages/*"] }' >package.json; echo '{}' >base.json; echo >node_modules/dep/index.js
  cd packages/a; echo 'require("../../base.json")' >climb.js; echo 'require("dep")' >module.js
  mkdir bin; cp /bin/sh bin; printf '#!%s\\necho here\\n' "$PWD/bin/sh" >tool; chmod +x tool
  printf '#!/bin/sh\\necho tool\\n' >../../../library/tool; chmod +x ../../../library/tool
  ln -s "$(realpath ../../../library)" far; ln -s ../../../library/data near
  cd ../../../python; python3 -m venv --without-pip .venv
  touch "$(echo .venv/lib/python3*/site-packages)/inside.py"
  printf '#!%s\\nimport inside\\n' "$PWD/.venv/bin/python3" >.venv/bin/tool; chmod +x .venv/bin/tool`
