import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { nativeDirectory } from '../../src/os/native-programs.ts'

/** Whether this kernel takes system calls of another architecture: not on arm64, with `ia32_emulation=0`, and in some virtual machines. */
export const hasForeignCalls = (): boolean =>
  !execFileSync(join(nativeDirectory(), 'probe'), ['i386'], { encoding: 'utf8' }).includes('absent')
