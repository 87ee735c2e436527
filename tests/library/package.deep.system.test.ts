/** The package as another project has it, by every other line of node. */
import { newerNodes } from '../support/nodes.ts'
import { describePackage } from './package.ts'

describePackage(
  newerNodes().map(({ file }) => file),
  'newer-nodes',
)
