/** The options with their texts, for help, manual and completion. An option without a text has that of its key. Pure. */
import { meaningOf } from './key-table.ts'
import { OPTIONS, type OptionDeclaration } from './options.ts'

export interface ExplainedOption extends OptionDeclaration {
  readonly help: string
}

/** In the order of the manual. */
export const EXPLAINED_OPTIONS: readonly ExplainedOption[] = OPTIONS.map((option) => {
  const { description = '', unit, standard } = (option.help === undefined && meaningOf(option.key ?? '')) || {}
  return {
    help: description,
    ...(unit === undefined ? {} : { unit }),
    ...(standard === undefined ? {} : { standard }),
    ...option,
  }
})
