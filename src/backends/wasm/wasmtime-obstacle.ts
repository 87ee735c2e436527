/** Whether wasmtime can be what runs WASI modules here, for a policy that names it. Pure. */
import { type HostFacts, isOlder, type Lack } from '../row-kit.ts'

/** First version with `--argv0`, the last to come of the options that are used: wasmtime pull request 8961 (2024-07). */
export const OLDEST_WASMTIME = '24.0.0'

const NODE_INSTEAD = 'leave out --runtime wasmtime: node runs WASI modules without it'

/**
 * @param walls what stands in the way of the namespace sandbox around it, which it cannot do without
 * @returns undefined when it can be used
 */
export function wasmtimeObstacle({ wasmtime }: Pick<HostFacts, 'wasmtime'>, walls: Lack | undefined): Lack | undefined {
  if (wasmtime === undefined) return { why: 'no wasmtime on PATH', fix: NODE_INSTEAD }
  const { path, version, setuid } = wasmtime
  if (setuid) return { why: `${path} is setuid`, fix: `sudo chmod u-s ${path}` }
  if (isOlder(version, OLDEST_WASMTIME))
    return { why: `${path} is version ${version || 'unknown'}, older than ${OLDEST_WASMTIME}`, fix: NODE_INSTEAD }
  if (walls === undefined) return undefined
  return {
    why: `wasmtime has no read-only directories, and no sandbox around it can hold them: ${walls.why}`,
    fix: walls.fix || NODE_INSTEAD,
  }
}
