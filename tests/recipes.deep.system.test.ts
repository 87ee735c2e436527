import { describeRecipes, ROWS } from './recipes.ts'

describeRecipes(ROWS.filter(({ isDeep }) => isDeep))
