/**
 * What only another process can find out before a first run: whether one may be moved to a cgroup, and the version of Landlock.
 * Starting one costs node 3 ms, so the one that was moved answers the other question, too.
 * Edge: processes.
 */
import { type Enter, enterAndAsk } from '../cgroup/enter.ts'
import { askLandlockAbi, landlockAbiIn, landlockQuestion } from './probe-engine.ts'

export interface ProcessQuestions {
  readonly enter: Enter
  /** @throws SandboxError SETUP_FAILED when there is no answer */
  readonly landlockAbi: () => Promise<number>
}

/** @param helpers a directory of helpers that can be trusted: they are executed */
export function processQuestions(helpers: string): ProcessQuestions {
  const moved: { asked?: ReturnType<typeof enterAndAsk> } = {}
  return {
    enter: async (group) => {
      moved.asked = enterAndAsk(group, landlockQuestion(helpers))
      return (await moved.asked).refused
    },
    landlockAbi: async () => landlockAbiIn((await moved.asked)?.told) ?? (await askLandlockAbi(helpers)),
  }
}
