// The manual page and the completions, each under the name by which man(1) and the shells find it.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { loadSources } from './load-sources.mjs'

const SOURCES = `
  export { COMPLETIONS } from './cli/completion.ts'
  export { manualRoff } from './cli/man-page.ts'`

/** Of the sources, not of the build: the same sources make the same page. */
function releaseDate(root) {
  const seconds = process.env.SOURCE_DATE_EPOCH || lastCommit(root)
  return new Date(Number(seconds) * 1000).toISOString().slice(0, 10)
}

function lastCommit(root) {
  try {
    return execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return 0 // Sources without a history: their packer sets SOURCE_DATE_EPOCH.
  }
}

/** @param directory gets man/ and completions/ */
export async function writeShellFiles(root, directory) {
  const { manualRoff, COMPLETIONS } = await loadSources(root, 'shell-files', SOURCES)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const page = manualRoff({ version, date: releaseDate(root) })
  const files = {
    'man/llm-do-exec.1': page,
    'man/llm-do.1': page,
    'completions/bash/llm-do': COMPLETIONS.bash,
    'completions/bash/llm-do-exec': COMPLETIONS.bash,
    'completions/zsh/_llm-do': COMPLETIONS.zsh,
    'completions/fish/llm-do.fish': COMPLETIONS.fish,
    'completions/fish/llm-do-exec.fish': COMPLETIONS.fish,
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
}
