// The parts of a session of a coding agent: its commands, read from bench/traces/*.trace, and the repository that it works on.
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const TRACES = join(dirname(fileURLToPath(import.meta.url)), 'traces')
export const PROJECT = join(TRACES, 'project')

/** One of these, and a shell is needed to read the line. */
const SHELL_SIGNS = /[|&;<>()$`\\"'*?[\]{}#!]/

/**
 * One command of a trace: `[!STATUS ][NAME=VALUE ]...COMMAND`. STATUS is the exit status that it ends with, where that is not 0.
 * @returns `script` where the command takes a shell, and `words` by which it is run without another shell
 */
export function readCommand(line) {
  const [, status, assignments, command] = /^(?:!(\d+) )?((?:[A-Z_]+=\S* )*)(.+)$/.exec(line)
  const variables = assignments.split(' ').filter((word) => word !== '')
  const isScript = SHELL_SIGNS.test(command)
  return {
    line,
    status: Number(status ?? 0),
    variables: variables.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
    script: isScript ? command : undefined,
    words: isScript ? ['/bin/sh', '-c', command] : command.split(/ +/),
  }
}

/** Empty lines and those that begin with `#` are for people. */
export const readTrace = (text) =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(readCommand)

/** @returns name -> commands */
export function readTraces() {
  const files = readdirSync(TRACES).filter((name) => name.endsWith('.trace'))
  return Object.fromEntries(
    files.map((file) => [file.replace('.trace', ''), readTrace(readFileSync(join(TRACES, file), 'utf8'))]),
  )
}

/** Commits in their order; the last one adds everything else. */
export const HISTORY = [
  ['Read statements', '.gitignore package.json lib/money.mjs lib/parse.mjs test'],
  ['Report by category', 'lib bin data/2024.csv'],
  ['Check for long lines', 'scripts/lint.mjs'],
  ['csvsum', 'native'],
  ['tools: Statements as JSON, and the median', 'tools tests'],
  ['docs: Columns', 'docs README.md'],
  ['version 1.4.0', '.'],
]

const IDENTITY = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }

/** The repository of bench/traces/project, with a history, in the directory of `stage`. */
export function makeRepository(stage) {
  cpSync(PROJECT, stage.cwd, { recursive: true })
  const git = (...words) => {
    const { status, stderr, error } = stage.run(['git', ...words], { env: { ...stage.env, ...IDENTITY } })
    if (status !== 0) throw new Error(`git ${words.join(' ')}: ${error?.message ?? stderr}`)
  }
  git('init', '-q', '-b', 'main')
  git('config', 'user.name', 'bench')
  git('config', 'user.email', 'bench@localhost')
  for (const [at, [message, paths]] of HISTORY.entries()) {
    git('add', ...paths.split(' '))
    git('commit', '-q', '-m', message, '--date', `2024-0${at + 1}-01T12:00:00Z`)
  }
  git('tag', 'v1.4.0')
}
