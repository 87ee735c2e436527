// The place of a bench: a separate home, cache and project, so that no user's files are read and nothing is left behind.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory of the package under test; LLM_DO_BENCH_ROOT names another build. */
export const ROOT = process.env.LLM_DO_BENCH_ROOT ?? dirname(dirname(fileURLToPath(import.meta.url)))

/** Variables that would change what is measured: other people's settings, and what slows node down. */
const LEFT_OUT = /^(LLM_DO_|NODE_|DOCKER_|XDG_)/

/** Bytes of output: a flood that is cut at its bound, told as JSON. */
const LARGEST = 64 * 1024 ** 2

export function makeStage() {
  const root = mkdtempSync(join(tmpdir(), 'llm-do-bench-'))
  chmodSync(root, 0o755) // a plain user may be among the runners
  const directory = (name) => {
    const path = join(root, name)
    mkdirSync(path, { mode: 0o700 })
    return path
  }
  const kept = Object.entries(process.env).filter(([name]) => !LEFT_OUT.test(name))
  const env = {
    ...Object.fromEntries(kept),
    HOME: directory('home'),
    XDG_CACHE_HOME: directory('cache'),
    XDG_RUNTIME_DIR: directory('runtime'),
  }
  const cwd = directory('project')
  const exec = join(ROOT, 'bin/llm-do-exec')
  if (!existsSync(exec)) throw new Error(`${exec}: not built (hint: make native build)`)
  const run = (words, options = {}) =>
    spawnSync(words[0], words.slice(1), { cwd, env, stdio: 'pipe', maxBuffer: LARGEST, ...options })
  return {
    directory: root,
    cwd,
    env,
    exec,
    llmDo: join(ROOT, 'bin/llm-do'),
    run,
    /** Runs it twice: the first run leaves the launch file, the second must find it. */
    warm(words) {
      for (let time = 0; time < 2; time += 1) {
        const { status, stderr, error } = run(words)
        if (status !== 0) throw new Error(`${words.join(' ')}: ${error?.message ?? `status ${status}: ${stderr}`}`)
      }
    },
    /** Words of the launch file that was left, filled in for `cwd` (native/lib/any-directory.h). */
    launchWords() {
      const left = join(env.XDG_CACHE_HOME, 'llm-do/launch')
      const [name] = existsSync(left) ? readdirSync(left) : []
      if (name === undefined) throw new Error('no launch file was left for the client: see llm-do exec --plan')
      const { dev, ino } = statSync(cwd, { bigint: true })
      const slots = { p: cwd, d: dev, i: ino, h: '0'.repeat(16), n: '0'.repeat(16) }
      const text = readFileSync(join(left, name), 'latin1')
      return text.replaceAll(/\x01([pdihn])/g, (_, letter) => slots[letter]).split('\0')
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}
