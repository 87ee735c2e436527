/** Every row of the table, by family. */

import { APPLY_ATTACKS } from './apply.ts'
import type { Attack } from './attack.ts'
import { FILE_ATTACKS } from './files.ts'
import { GIT_ATTACKS } from './git.ts'
import { HOST_ATTACKS } from './host.ts'
import { KERNEL_ATTACKS } from './kernel.ts'
import { LIMIT_ATTACKS } from './limits.ts'
import { STATE_ATTACKS } from './state.ts'

export const ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...GIT_ATTACKS,
  ...STATE_ATTACKS,
  ...APPLY_ATTACKS,
  ...LIMIT_ATTACKS,
  ...HOST_ATTACKS,
  ...KERNEL_ATTACKS,
]
