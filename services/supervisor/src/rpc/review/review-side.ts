import { NotImplementedError } from '@writ/kernel';
import type { ReviewSide, SupervisorContext } from '../../context.ts';
import { writsWithoutReceipt } from '../../store/decisions.ts';

/** What runs and their orders need of reviews. */
export function createReviewSide({ store, peers }: SupervisorContext): ReviewSide {
  return {
    async carriedReceipts(_agent, receipts) {
      if (receipts.length > 0) throw notYet();
      return async () => undefined;
    },
    async decisionNow() {
      throw notYet();
    },
    async settleWrits(run) {
      let underWay = 0;
      for (const call of await writsWithoutReceipt(store.db, run)) {
        const { state } = await peers.toolGateway.voidWrit(call, 'The run has ended.');
        if (state === 'in_flight') underWay += 1;
      }
      return underWay;
    },
  };
}

function notYet(): NotImplementedError {
  return new NotImplementedError('NOT_IMPLEMENTED_YET', 'Reviews come with a later version.');
}
