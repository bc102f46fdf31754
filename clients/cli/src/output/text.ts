export { timeText, usdText } from '@writ/client/display';
