// Results that the build computes, so that no run has to: the shipped layers as the schema and the YAML parser read them,
// for src/policy/precompiled.ts, and the filters of its seccomp profiles, for src/seccomp/precompiled.ts. A shipped profile that is wrong
// ends the build here.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { loadSources } from './load-sources.mjs'

const READERS = `
  export { BUILT_IN } from './policy/built-in.ts'
  export { checkLayer } from './policy/validate-layer.ts'
  export { parseProfile } from './policy/parse.ts'
  export { compileProfile, toHex } from './seccomp/compile.ts'
  export { keptSets, nameOf } from './seccomp/filter.ts'
  export { PROFILE_NAMES } from './seccomp/rules.ts'
  export { ARCHES } from './seccomp/syscalls.ts'`

/** @throws for a value that JSON would change: what is known must be what is read */
function checked({ parsed, problems }) {
  if (problems.length > 0) throw new Error(problems.join('\n'))
  if (!isDeepStrictEqual(JSON.parse(JSON.stringify(parsed)), parsed)) throw new Error('a value that JSON cannot hold')
  return parsed
}

function precompiledProfile(file, { parseProfile, checkLayer }) {
  const bytes = readFileSync(file)
  const { layer } = parseProfile({ file, bytes })
  const lines = Object.entries(layer.locations).map(([key, location]) => [key, Number(location.slice(file.length + 1))])
  return {
    text: bytes.toString('utf8'),
    values: layer.values,
    lines: Object.fromEntries(lines),
    parsed: checked(checkLayer(layer)),
  }
}

function precompiledFilters({ PROFILE_NAMES, ARCHES, compileProfile, toHex, nameOf, keptSets }) {
  // As src/run/filter.ts asks for them.
  const kept = [false, true].map((isRoot) => keptSets({ isRoot }))
  const requests = [...PROFILE_NAMES, 'off'].flatMap((profile) =>
    ARCHES.flatMap((arch) => kept.map((always) => ({ profile, arch, always }))),
  )
  return Object.fromEntries(requests.map((one) => [nameOf(one), toHex(compileProfile(one).filter)]))
}

/** @returns the values of PRECOMPILED in src/policy/precompiled.ts and of PRECOMPILED_FILTERS in src/seccomp/precompiled.ts */
export async function precompile(root) {
  const readers = await loadSources(root, 'readers', READERS)
  return { policy: precompiledPolicy(root, readers), filters: precompiledFilters(readers) }
}

function precompiledPolicy(root, readers) {
  const directory = join(root, 'profiles')
  const names = readdirSync(directory).filter((name) => name.endsWith('.yaml'))
  return {
    builtIn: checked(readers.checkLayer(readers.BUILT_IN)),
    profiles: names.sort().map((name) => precompiledProfile(join(directory, name), readers)),
  }
}
