// The parts of ECharts that are used, and what they look like here. Its tooltips are drawn, not made of markup.
import { BarChart, CustomChart, TreemapChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import { type ComposeOption, type ECharts, init, use } from 'echarts/core';
import type { BarSeriesOption, CustomSeriesOption, TreemapSeriesOption } from 'echarts/charts';
import type { DataZoomComponentOption, GridComponentOption, LegendComponentOption, TooltipComponentOption } from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';
import { themed } from '../dom';
import { whenShown } from './shown';

use([BarChart, CustomChart, TreemapChart, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

export type Option = ComposeOption<BarSeriesOption | CustomSeriesOption | TreemapSeriesOption | DataZoomComponentOption | GridComponentOption | LegendComponentOption | TooltipComponentOption>;

export type CustomItem = ReturnType<NonNullable<CustomSeriesOption['renderItem']>>;

// `make` is asked again when the theme changes.
export function chart(label: string, height: number, make: () => Option, clicked?: (index: number) => void): HTMLElement {
  let made: ECharts | null = null;
  return whenShown(label, height, (holder) => {
    made?.dispose();
    made = init(holder, null, { renderer: 'canvas' });
    made.setOption({ animation: false, textStyle: { fontFamily: themed('--font'), color: themed('--text') }, ...make() });
    if (clicked) made.on('click', (event) => clicked(event.dataIndex));
  });
}

export const tooltip = (): TooltipComponentOption => ({
  renderMode: 'richText', confine: true, backgroundColor: themed('--bg'), borderColor: themed('--line'), textStyle: { color: themed('--text'), fontSize: 13 },
});
