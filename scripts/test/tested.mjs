// The record of the sources that passed `make test`: the tree of the last commit, if the checkout had no changes. `make release` demands it.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const record = (root) => join(root, 'build/tested')

/** @returns the tree that is checked out, undefined if it has changes or no history */
export function cleanTree(root) {
  const git = (...words) => execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim()
  try {
    return git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD^{tree}') : undefined
  } catch {
    return undefined // Sources without a history can be tested, too.
  }
}

/** @param before what cleanTree() returned before the tests */
export function recordTested(root, before) {
  if (before === undefined || before !== cleanTree(root)) return
  mkdirSync(dirname(record(root)), { recursive: true })
  writeFileSync(record(root), `${before}\n`)
}

export function testedTree(root) {
  try {
    return readFileSync(record(root), 'utf8').trim()
  } catch {
    return undefined // No test has passed here.
  }
}
