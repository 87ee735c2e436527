/** The standing adversary, where every user has the same walls: git, what decides the next run, and what the runner starts. */
import { APPLY_ATTACKS } from './apply.ts'
import { testAttacks } from './daily.ts'
import { GIT_ATTACKS } from './git.ts'
import { HOST_ATTACKS } from './host.ts'
import { KERNEL_ATTACKS } from './kernel.ts'
import { isShared } from './matrix.ts'
import { STATE_ATTACKS } from './state.ts'

testAttacks([
  ...GIT_ATTACKS,
  ...STATE_ATTACKS,
  ...APPLY_ATTACKS,
  ...HOST_ATTACKS,
  ...KERNEL_ATTACKS.filter((row) => !isShared(row)),
])
