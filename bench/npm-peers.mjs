// Sandboxes that coding agents bring, from npm. They are compared where they are installed:
//   node bench/npm-peers.mjs
// installs them into build/peers, 420 MB. Nothing here needs them.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram } from './bwrap.mjs'
import { ROOT } from './stage.mjs'

const PLACE = join(ROOT, 'build/peers')
const MODULES = join(PLACE, 'node_modules')
const PACKAGES = ['@anthropic-ai/sandbox-runtime', '@openai/codex']

/** codex makes no helpers for a home below /tmp. */
const CODEX_HOME = join(PLACE, 'codex-home')

export const program = (name) => join(MODULES, '.bin', name)

/** srt needs ripgrep; codex brings one. */
function ripgrepDirectory() {
  if (findProgram('rg') !== undefined || !existsSync(join(MODULES, '@openai'))) return undefined
  const found = readdirSync(join(MODULES, '@openai'), { recursive: true }).find((path) =>
    path.endsWith('codex-path/rg'),
  )
  return found && join(MODULES, '@openai', found, '..')
}

function srt(stage) {
  const settings = join(stage.directory, 'srt.json')
  const network = { allowedDomains: [], deniedDomains: [] }
  const filesystem = { denyRead: [], allowWrite: ['.', stage.directory], denyWrite: [] }
  writeFileSync(settings, JSON.stringify({ network, filesystem }))
  const more = ripgrepDirectory()
  return {
    env: more === undefined ? {} : { PATH: `${stage.env.PATH}${delimiter}${more}` },
    argv: ({ script, words }) => [program('srt'), '-s', settings, ...(script ? ['-c', script] : ['--', ...words])],
  }
}

/** By itself it shows .git read-only, where no agent could commit. */
function codex(stage) {
  mkdirSync(CODEX_HOME, { recursive: true })
  const roots = JSON.stringify([stage.cwd, join(stage.cwd, '.git')])
  const settings = ['sandbox_mode="workspace-write"', `sandbox_workspace_write.writable_roots=${roots}`]
  const options = settings.flatMap((setting) => ['-c', setting])
  return { env: { CODEX_HOME }, argv: ({ words }) => [program('codex'), 'sandbox', ...options, '--', ...words] }
}

/** Name -> what makes of a stage the variables and the words of a run there. */
export const NPM_PEERS = { srt, codex }

export const isInstalled = (name) => existsSync(program(name))

export function install() {
  mkdirSync(PLACE, { recursive: true })
  writeFileSync(join(PLACE, 'package.json'), '{ "private": true }\n')
  const words = ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...PACKAGES]
  return spawnSync('npm', words, { cwd: PLACE, stdio: 'inherit' }).status ?? 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = install()
