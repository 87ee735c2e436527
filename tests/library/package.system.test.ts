/** The package as another project has it, by the node that runs the tests. */
import { describePackage } from './package.ts'

describePackage([process.execPath])
