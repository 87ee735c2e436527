// Draws the pictures of the documents into docs/pictures: the diagrams below, and the session of docs/guide/first-session.md.
//
//   pictures           draw the diagrams
//   pictures session   run the commands of the session, too, and draw what they print
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const PICTURES = join(ROOT, 'docs/pictures')

/** Light and dark values of each color. */
const COLORS = {
  page: ['#ffffff', '#0d1117'],
  text: ['#1f2328', '#e6edf3'],
  faint: ['#59636e', '#9198a1'],
  line: ['#818b98', '#7d8590'],
  plain: ['#f6f8fa', '#161b22'],
  inside: ['#dafbe1', '#12261e'],
  'inside-line': ['#1a7f37', '#3fb950'],
  outside: ['#ffebe9', '#2d1517'],
  'outside-line': ['#cf222e', '#f85149'],
  change: ['#fff8c5', '#2b2411'],
  'change-line': ['#9a6700', '#d29922'],
}

const variables = (index) =>
  Object.entries(COLORS)
    .map(([name, values]) => `--${name}:${values[index]}`)
    .join(';')

const STYLE = `<style>
svg{${variables(0)}}
@media(prefers-color-scheme:dark){svg{${variables(1)}}}
text{font:14px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--text)}
.mono{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}
.title{font-weight:600}.small{font-size:12.5px}.faint{fill:var(--faint)}
.added{fill:var(--inside-line)}.removed{fill:var(--outside-line)}.said{fill:var(--change-line)}
.page{fill:var(--page)}.plain{fill:var(--plain);stroke:var(--line)}
.inside{fill:var(--inside);stroke:var(--inside-line)}.outside{fill:var(--outside);stroke:var(--outside-line)}
.change{fill:var(--change);stroke:var(--change-line)}
.frame{fill:none;stroke:var(--line);stroke-dasharray:5 4}.wall{fill:none;stroke:var(--inside-line);stroke-width:2.5}
.arrow{fill:none;stroke:var(--text);stroke-width:1.5}.stop{stroke:var(--outside-line);stroke-width:2.5}
.head{fill:var(--text)}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
<path class="head" d="M0 0L8 4L0 8z"/></marker></defs>`

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const text = (x, y, words, kind = '') => `<text x="${x}" y="${y}" class="${kind}">${escaped(words)}</text>`

/** A rectangle with a title and lines below it. */
const box = ({ x, y, w, h, kind = 'plain', title, lines = [] }) =>
  [
    `<rect x="${x}" y="${y}" width="${w}" height="${h}" rx="6" class="${kind}"/>`,
    ...(title === undefined ? [] : [text(x + 12, y + 22, title, 'title')]),
    ...lines.map((line, index) => text(x + 12, y + (title === undefined ? 22 : 42) + index * 18, line, 'small')),
  ].join('\n')

/** A line through points, with a head at its end; a stop has a cross there. */
const arrow = ({ points, words, at, isStopped = false }) => {
  const [x, y] = points.at(-1)
  const path = points.map(([px, py], index) => `${index === 0 ? 'M' : 'L'}${px} ${py}`).join('')
  const end = isStopped ? `<path class="stop" d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12"/>` : ''
  const label = words === undefined ? '' : text(at[0], at[1], words, 'small faint')
  return `<path class="arrow" d="${path}"${isStopped ? '' : ' marker-end="url(#head)"'}/>${end}${label}`
}

/** @param label for people who do not see the picture */
const picture = ({ width, height, label, parts }) =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(label)}</title>`,
    STYLE,
    `<rect width="${width}" height="${height}" class="page"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')

const sandbox = () =>
  picture({
    width: 800,
    height: 430,
    label: 'The sandbox sees the project, the programs and the directories and hosts that are named, and nothing else.',
    parts: [
      box({ x: 10, y: 10, w: 300, h: 410, kind: 'frame', title: 'Your machine' }),
      box({ x: 470, y: 10, w: 320, h: 410, kind: 'wall', title: 'What the command sees' }),
      box({ x: 25, y: 45, w: 270, h: 50, title: 'The directory you stand in' }),
      box({ x: 485, y: 45, w: 290, h: 50, kind: 'inside', title: '/workspace', lines: [] }),
      text(600, 67, 'read-only', 'small'),
      text(497, 86, 'with --rw .: writable; with --cow .: a draft', 'small'),
      arrow({
        points: [
          [295, 70],
          [483, 70],
        ],
        words: 'mounted',
        at: [340, 63],
      }),
      box({ x: 25, y: 107, w: 270, h: 40, title: '/usr /bin /lib, a few files of /etc' }),
      box({ x: 485, y: 107, w: 290, h: 40, kind: 'inside', title: 'the same, read-only' }),
      arrow({
        points: [
          [295, 127],
          [483, 127],
        ],
        words: 'mounted',
        at: [340, 120],
      }),
      box({ x: 25, y: 159, w: 270, h: 40, title: '/opt/data' }),
      box({ x: 485, y: 159, w: 290, h: 40, kind: 'inside', title: '/opt/data, read-only' }),
      arrow({
        points: [
          [295, 179],
          [483, 179],
        ],
        words: '--ro /opt/data',
        at: [340, 172],
      }),
      box({ x: 485, y: 211, w: 290, h: 46, kind: 'inside', title: '/tmp and a home', lines: [] }),
      text(497, 249, 'empty, in memory, removed at the end', 'small'),
      box({ x: 25, y: 211, w: 270, h: 96, kind: 'outside', title: 'Your home, /etc/shadow' }),
      text(37, 255, '~/.ssh  ~/.aws  ~/.config  other projects', 'small'),
      text(37, 275, 'other processes, docker.sock, D-Bus', 'small'),
      text(37, 295, 'your environment variables', 'small'),
      arrow({
        points: [
          [295, 280],
          [462, 280],
        ],
        isStopped: true,
        words: 'does not exist inside',
        at: [320, 272],
      }),
      box({ x: 25, y: 322, w: 270, h: 84, title: 'Network' }),
      text(37, 366, 'hosts that you list', 'small'),
      text(37, 392, 'all other hosts, the LAN, localhost', 'small'),
      box({ x: 485, y: 322, w: 290, h: 84, kind: 'inside', title: 'No network by default' }),
      text(497, 366, '--allow-host NAME: this name, nothing else', 'small'),
      text(497, 392, 'a refused name is reported with its flag', 'small'),
      arrow({
        points: [
          [483, 361],
          [297, 361],
        ],
      }),
      arrow({
        points: [
          [468, 387],
          [310, 387],
        ],
        isStopped: true,
      }),
    ],
  })

const run = () => {
  const steps = [
    ['1. Plan', 'plain', ['options, profile,', 'this machine', '', 'a cached plan', 'needs no Node']],
    ['2. Build', 'plain', ['cgroup: limits,', 'namespaces,', 'empty root,', 'mounted', 'directories']],
    ['3. Lock', 'plain', ['Landlock,', 'no capabilities,', 'rlimits,', 'seccomp filter']],
    ['4. Run', 'inside', ['the command', 'with your stdin,', 'stdout, stderr', '', 'limits watched']],
    ['5. End', 'plain', ['kill the rest,', 'check what is', 'protected,', 'remove cgroup', 'and mounts']],
    ['6. Report', 'plain', ['exit status,', 'or JSON with', 'reason, usage,', 'denials, hints']],
  ]
  return picture({
    width: 800,
    height: 250,
    label:
      'A run: plan, build, lock, run, end, report. Before the command starts, everything that cannot be done is refused.',
    parts: [
      ...steps.flatMap(([title, kind, lines], index) => [
        box({ x: 10 + index * 132, y: 20, w: 118, h: 140, kind, title, lines }),
        ...(index === 0
          ? []
          : [
              arrow({
                points: [
                  [10 + index * 132 - 14, 90],
                  [10 + index * 132 - 2, 90],
                ],
              }),
            ]),
      ]),
      box({
        x: 10,
        y: 190,
        w: 382,
        h: 48,
        kind: 'outside',
        title: 'Not possible here: exit status 125',
        lines: [],
      }),
      text(22, 230, 'reason and fix on stderr; nothing was started', 'small'),
      arrow({
        points: [
          [200, 162],
          [200, 188],
        ],
      }),
      box({ x: 406, y: 190, w: 384, h: 48, title: 'Killed runner, timeout, a signal, a crash' }),
      text(418, 230, 'the same end: the whole tree is killed', 'small'),
      arrow({
        points: [
          [597, 188],
          [597, 162],
        ],
      }),
    ],
  })
}

const network = () =>
  picture({
    width: 800,
    height: 330,
    label:
      'The command asks a name server inside the sandbox; the connection is diverted to a helper outside, which checks and dials.',
    parts: [
      box({ x: 10, y: 10, w: 370, h: 310, kind: 'wall', title: 'Sandbox: only a loopback interface' }),
      box({ x: 30, y: 130, w: 120, h: 60, kind: 'inside', title: 'command', lines: ['curl, npm, git'] }),
      box({ x: 220, y: 50, w: 145, h: 78, title: 'name server' }),
      text(232, 92, 'listed: 198.18.0.7', 'small'),
      text(232, 112, 'else: NXDOMAIN', 'small'),
      box({ x: 220, y: 190, w: 145, h: 78, title: 'nftables' }),
      text(232, 232, 'diverts connections', 'small'),
      text(232, 252, 'to listed names', 'small'),
      arrow({
        points: [
          [90, 130],
          [90, 88],
          [218, 88],
        ],
        words: '1. name?',
        at: [100, 80],
      }),
      arrow({
        points: [
          [90, 190],
          [90, 230],
          [218, 230],
        ],
        words: '2. connect',
        at: [100, 222],
      }),
      arrow({
        points: [
          [60, 190],
          [60, 292],
          [170, 292],
        ],
        isStopped: true,
      }),
      text(184, 297, 'not listed: unreachable', 'small faint'),
      box({ x: 450, y: 130, w: 160, h: 118, title: 'helper, outside' }),
      text(462, 172, 'host and port listed?', 'small'),
      text(462, 192, 'address public?', 'small'),
      text(462, 212, 'then it dials and', 'small'),
      text(462, 232, 'counts the bytes', 'small'),
      arrow({
        points: [
          [365, 230],
          [448, 230],
        ],
        words: '3.',
        at: [400, 222],
      }),
      arrow({
        points: [
          [450, 150],
          [405, 150],
          [405, 88],
          [367, 88],
        ],
        words: 'answers',
        at: [412, 122],
      }),
      box({ x: 660, y: 150, w: 130, h: 56, kind: 'inside', title: 'listed host', lines: ['example.org:443'] }),
      arrow({
        points: [
          [610, 178],
          [658, 178],
        ],
        words: '4.',
        at: [626, 170],
      }),
      box({ x: 660, y: 236, w: 130, h: 56, kind: 'outside', title: 'all others', lines: ['LAN, localhost'] }),
      arrow({
        points: [
          [610, 236],
          [648, 258],
        ],
        isStopped: true,
      }),
      box({ x: 450, y: 30, w: 340, h: 66, title: 'The result' }),
      text(462, 72, 'each host, port, verdict and rule; for each', 'small'),
      text(462, 89, 'denial the flag that allows it', 'small'),
      arrow({
        points: [
          [560, 130],
          [560, 98],
        ],
      }),
    ],
  })

const cow = () =>
  picture({
    width: 800,
    height: 300,
    label:
      'Before apply the project is unchanged and the layer has the changes. Apply moves them into the project; undo takes them back.',
    parts: [
      box({ x: 10, y: 10, w: 380, h: 280, kind: 'frame', title: 'Until you decide' }),
      box({ x: 30, y: 45, w: 340, h: 62, kind: 'inside', title: 'What the command sees: both' }),
      text(42, 90, 'a.txt (changed)   b.txt   new.txt', 'mono'),
      box({ x: 30, y: 140, w: 340, h: 56, kind: 'change', title: 'Layer: what the command wrote' }),
      text(42, 184, 'a.txt (changed)           new.txt', 'mono'),
      box({ x: 30, y: 222, w: 340, h: 56, title: 'Your project: every byte as before' }),
      text(42, 266, 'a.txt (old)       b.txt', 'mono'),
      arrow({
        points: [
          [200, 138],
          [200, 109],
        ],
      }),
      arrow({
        points: [
          [350, 220],
          [350, 109],
        ],
      }),
      box({ x: 410, y: 10, w: 380, h: 280, kind: 'frame', title: 'After llm-do apply' }),
      box({ x: 430, y: 45, w: 340, h: 62, title: 'llm-do diff first; then apply or discard' }),
      text(442, 90, 'a conflict: nothing is applied', 'small'),
      box({ x: 430, y: 140, w: 340, h: 56, kind: 'change', title: 'Layer: what llm-do undo needs' }),
      text(442, 184, 'a.txt (old)', 'mono'),
      box({ x: 430, y: 222, w: 340, h: 56, kind: 'inside', title: 'Your project' }),
      text(442, 266, 'a.txt (changed)   b.txt   new.txt', 'mono'),
      arrow({
        points: [
          [390, 168],
          [408, 168],
        ],
      }),
      arrow({
        points: [
          [560, 198],
          [560, 220],
        ],
        words: 'all or nothing',
        at: [568, 214],
      }),
    ],
  })

const LIMITS = [
  ['--memory', 'memory.max', 'watchdog: adds up the tree and kills it'],
  ['--pids', 'pids.max', 'RLIMIT_NPROC: fork fails'],
  ['--cpus', 'cpu.max', 'processor affinity: whole processors'],
  ['--read-bps ...', 'io.max', 'none: the run is refused'],
]

const limits = () =>
  picture({
    width: 800,
    height: 330,
    label:
      'Limits are enforced by a cgroup of the kernel, or by a fallback; timeouts and output by the runner. The result names it.',
    parts: [
      text(22, 30, 'Limit', 'title'),
      text(170, 30, 'Kernel: a cgroup of the run', 'title'),
      text(440, 30, 'Fallback without that controller', 'title'),
      ...LIMITS.flatMap(([flag, kernel, fallback], index) => {
        const y = 45 + index * 48
        return [
          text(22, y + 25, flag, 'mono'),
          box({ x: 160, y, w: 200, h: 38, kind: 'inside' }),
          text(172, y + 24, kernel, 'mono'),
          arrow({
            points: [
              [362, y + 19],
              [428, y + 19],
            ],
            words: 'if not',
            at: [374, y + 13],
          }),
          box({ x: 430, y, w: 360, h: 38, kind: index === 3 ? 'outside' : 'change', lines: [] }),
          text(442, y + 24, fallback, 'small'),
        ]
      }),
      text(22, 262, '--timeout', 'mono'),
      text(22, 282, '--output', 'mono'),
      box({
        x: 160,
        y: 240,
        w: 630,
        h: 48,
        lines: ['The runner: its own timer and counter, the same on every machine'],
      }),
      text(
        22,
        316,
        'The result names what enforces each limit. --require memory-limit refuses the fallback.',
        'small faint',
      ),
    ],
  })

const SESSION_PAGE = 'docs/guide/first-session.md'

/** The commands of the console blocks below the first heading of the page. */
const sessionCommands = (page) =>
  [...page.split(/^## /m)[1].matchAll(/^```console\n(.*?)^```$/gms)].flatMap(([, block]) =>
    block
      .split('\n')
      .filter((line) => line.startsWith('$ '))
      .map((line) => line.slice(2)),
  )

/** Lines of a terminal: the commands, run in an empty directory with an empty home, and what they print. */
function playSession(commands) {
  const site = mkdtempSync(join(tmpdir(), 'session-'))
  try {
    for (const name of ['project', 'home']) mkdirSync(join(site, name))
    const env = { PATH: `${join(ROOT, 'bin')}:${process.env.PATH}`, HOME: join(site, 'home'), LANG: 'C.UTF-8' }
    const options = { cwd: join(site, 'project'), env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }
    const printed = (command) => execFileSync('bash', ['-c', `exec 2>&1\n${command}\ntrue`], options)
    return commands.flatMap((command) => [`$ ${command}`, ...printed(command).split('\n').slice(0, -1)])
  } finally {
    rmSync(site, { recursive: true, force: true })
  }
}

/** The color of a line: commands, our own messages, and the lines of a patch. */
const COLOR_OF_LINE = [
  [/^\$ /, ' title'],
  [/^llm-do: | {2}denied: /, ' said'],
  [/^-(?!-)/, ' removed'],
  [/^\+(?!\+)/, ' added'],
]
const colorOf = (line) => COLOR_OF_LINE.find(([pattern]) => pattern.test(line))?.[1] ?? ''

const session = (lines) =>
  picture({
    width: 800,
    height: 40 + lines.length * 19,
    label: 'A recorded session: a denial, its hint, llm-do why, a copy-on-write run, diff and apply.',
    parts: [
      `<rect x="4" y="4" width="792" height="${32 + lines.length * 19}" rx="8" class="plain"/>`,
      ...lines.map((line, index) => text(20, 30 + index * 19, line, `mono${colorOf(line)}`)),
    ],
  })

export const DIAGRAMS = { sandbox, run, network, cow, limits }

function main([what]) {
  for (const [name, draw] of Object.entries(DIAGRAMS)) writeFileSync(join(PICTURES, `${name}.svg`), draw())
  if (what !== 'session') return
  const page = readFileSync(join(ROOT, SESSION_PAGE), 'utf8')
  writeFileSync(join(PICTURES, 'session.svg'), session(playSession(sessionCommands(page))))
}

if (process.argv[1] === import.meta.filename) main(process.argv.slice(2))
