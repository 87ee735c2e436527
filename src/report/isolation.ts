/** One line about how a run was isolated, for logs. Pure. */
import type { Result } from './result.ts'

/** In the words that log readers of Docker executors look for. */
export function isolationLine(backend: Result['backend']): string {
  if (backend === null) return 'Isolation: REFUSED (nothing was run)'
  if (backend === 'docker') return 'Docker isolation: ENABLED (Secure)'
  if (backend === 'process') return 'Isolation: DISABLED (Host process)'
  return `Isolation: ENABLED (${backend})`
}
