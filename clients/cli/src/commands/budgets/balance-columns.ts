import { wordOf } from '@writ/client/display';
import { BudgetLevel, type LevelBalance } from '@writ/contracts/writ/meter/v1/tab_pb';
import type { Column } from '../../output/table.ts';
import { usdText } from '../../output/text.ts';

/** Columns of the levels of a budget. */
export const BALANCE_COLUMNS: readonly Column<LevelBalance>[] = [
  { heading: 'LEVEL', text: ({ level }) => wordOf(BudgetLevel, level).replaceAll('_', ' ') },
  ...amounts('COST', {
    used: (one) => one.usedCostNanoUsd,
    reserved: (one) => one.reservedCostNanoUsd,
    remaining: (one) => one.remainingCostNanoUsd,
    text: usdText,
  }),
  ...amounts('TOKENS', {
    used: (one) => one.usedTokens,
    reserved: (one) => one.reservedTokens,
    remaining: (one) => one.remainingTokens,
    text: String,
  }),
  ...amounts('TURNS', {
    used: (one) => one.usedTurns,
    reserved: (one) => one.reservedTurns,
    remaining: (one) => one.remainingTurns,
    text: String,
  }),
  { heading: 'SET BY', text: ({ capsSetBy }) => capsSetBy },
];

/** The columns of one dimension: used, reserved, left. */
function amounts(
  unit: string,
  of: {
    readonly used: (balance: LevelBalance) => bigint;
    readonly reserved: (balance: LevelBalance) => bigint;
    readonly remaining: (balance: LevelBalance) => bigint | undefined;
    readonly text: (amount: bigint) => string;
  },
): Column<LevelBalance>[] {
  const remaining = (balance: LevelBalance): string => {
    const left = of.remaining(balance);
    return left === undefined ? 'no cap' : of.text(left);
  };
  return [
    { heading: unit, isNumber: true, text: (one) => of.text(of.used(one)) },
    { heading: 'RESERVED', isNumber: true, text: (one) => of.text(of.reserved(one)) },
    { heading: 'LEFT', isNumber: true, text: remaining },
  ];
}
