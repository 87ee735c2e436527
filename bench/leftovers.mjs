// Counts leftovers of runs from outside.
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const entries = (directory) => {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

const text = (file) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

const OURS = new Set(['launch', 'bwrap', '.init', 'init', 'llm-do-exec'])

function groups(directory, depth) {
  return entries(directory).reduce(
    (sum, name) =>
      sum +
      (name.startsWith('llm-do-') ? 1 : 0) +
      (depth > 0 && !name.includes('.') ? groups(join(directory, name), depth - 1) : 0),
    0,
  )
}

const runsDirectory = (env) => (process.getuid() === 0 ? '/run/llm-do/runs' : join(env.XDG_RUNTIME_DIR, 'llm-do/runs'))

/** Other people's runs on the same machine count, too: a quiet machine is the judge. */
export function countLeftovers(env) {
  const processes = entries('/proc').filter((name) => /^\d+$/.test(name) && OURS.has(text(`/proc/${name}/comm`).trim()))
  return {
    processes: processes.length,
    mounts: text('/proc/self/mountinfo').split('\n').length,
    cgroups: groups('/sys/fs/cgroup', 4),
    records: entries(runsDirectory(env)).length,
    files: entries(tmpdir()).filter((name) => name.startsWith('.llm-do-')).length,
  }
}

/** The kernel takes namespaces apart after the last process; so it is asked again until nothing is more than before. */
export async function growthSince(before, env) {
  for (let time = 0; ; time += 1) {
    const now = countLeftovers(env)
    const growth = Object.fromEntries(Object.keys(before).map((what) => [what, Math.max(0, now[what] - before[what])]))
    const sum = Object.values(growth).reduce((total, one) => total + one, 0)
    if (sum === 0 || time === 20) return { sum, growth }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
