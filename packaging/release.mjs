// `make release`: checks the tree, builds the last commit twice in two clones with different names, demands the same bytes, and keeps them.
//   REPOSITORY=URL MAINTAINER='NAME <MAIL>' node packaging/release.mjs DIRECTORY
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { testedTree } from '../scripts/test/tested.mjs'
import { facts, root } from './facts.mjs'
import { problemsOf } from './release-checks.mjs'

const say = (line) => console.error(`release: ${line}`)
const read = (file) => readFileSync(join(root, file), 'utf8')
const git = (...words) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim()
const tagged = (name) => git('tag', '--list', name) && git('rev-parse', `${name}^{commit}`)

function check() {
  const lock = JSON.parse(read('package-lock.json'))
  const problems = problemsOf({
    status: git('status', '--porcelain'),
    commit: git('rev-parse', 'HEAD'),
    tree: git('rev-parse', 'HEAD^{tree}'),
    tested: testedTree(root),
    tag: tagged(`v${facts.version}`),
    facts,
    versions: {
      'package-lock.json': lock.version,
      'package-lock.json, packages': lock.packages[''].version,
      'clients/python/pyproject.toml': /^version = "(.*)"$/m.exec(read('clients/python/pyproject.toml'))?.[1],
      'packaging/devcontainer': JSON.parse(read('packaging/devcontainer/llm-do/devcontainer-feature.json')).version,
    },
    changelog: read('CHANGELOG.md'),
  })
  for (const problem of problems) say(problem)
  if (problems.length > 0) process.exit(1)
}

/** Nothing but what is committed is in a clone. Its name, the mode of new files and the language are others in the second one. */
function buildIn(clone, { umask, LC_ALL }) {
  git('clone', '--quiet', '--no-local', root, clone)
  const files = join(clone, 'build/release')
  const made = `umask ${umask} && exec make --no-print-directory release-files RELEASE="$0"`
  const { MAKEFLAGS, MAKELEVEL, MFLAGS, SOURCE_DATE_EPOCH, ...env } = process.env
  execFileSync('sh', ['-c', made, files], { cwd: clone, env: { ...env, LC_ALL }, stdio: ['ignore', 2, 2] })
  return files
}

const sums = (directory) =>
  readdirSync(directory)
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(directory, name)))
          .digest('hex')}  ${name}`,
    )

const target = resolve(process.argv[2])
check()
const place = mkdtempSync(join(tmpdir(), 'llm-do-release-'))
try {
  say('building the last commit')
  const first = buildIn(join(place, 'first'), { umask: '022', LC_ALL: 'C' })
  say('building it again, in another directory')
  const second = buildIn(join(place, 'another-directory'), { umask: '077', LC_ALL: 'C.UTF-8' })
  const again = new Set(sums(second))
  const different = sums(first).filter((line) => !again.has(line))
  if (different.length > 0 || again.size !== sums(first).length) {
    for (const line of different) say(`not the same bytes in both builds: ${line}`)
    process.exitCode = 1
  } else {
    rmSync(target, { recursive: true, force: true })
    cpSync(first, target, { recursive: true })
    for (const line of sums(target)) console.log(line)
    say(`${target}: both builds made these files (next: git tag v${facts.version}, and publish NOTES.md with them)`)
  }
} finally {
  rmSync(place, { recursive: true, force: true })
}
