/** A customer. */
interface Customer {
  readonly id: number;
  readonly name: string;
  readonly country: string;
  readonly tier: string;
}

/** Plan and last payment of a customer. */
interface Billing {
  readonly plan: string;
  readonly currency: string;
  readonly lastChargeCents: number;
  readonly daysSincePayment: number;
}

const CUSTOMERS: ReadonlyMap<number, { readonly customer: Customer; readonly billing: Billing }> =
  new Map([
    [
      42,
      {
        customer: { id: 42, name: 'Anna', country: 'US', tier: 'enterprise' },
        billing: {
          plan: 'annual_enterprise',
          currency: 'USD',
          lastChargeCents: 120_000,
          daysSincePayment: 10,
        },
      },
    ],
    [
      7,
      {
        customer: { id: 7, name: 'Max', country: 'US', tier: 'pro' },
        billing: {
          plan: 'pro_monthly',
          currency: 'USD',
          lastChargeCents: 4_900,
          daysSincePayment: 35,
        },
      },
    ],
  ]);

/** Returns the customer with this id and the billing data; undefined if no customer has this id. */
export function findCustomer(userId: number) {
  return CUSTOMERS.get(userId);
}
