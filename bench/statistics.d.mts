export function quantile(values: readonly number[], p: number): number
export function median(values: readonly number[]): number
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string
