/** One line about how a run was isolated, for logs. Pure. */
import { backendNamed } from '../backends/index.ts'
import type { Result } from './result.ts'

/** In the words that log readers of Docker executors look for. */
export function isolationLine(backend: Result['backend']): string {
  return backend === null ? 'Isolation: REFUSED (nothing was run)' : backendNamed(backend).headline
}
