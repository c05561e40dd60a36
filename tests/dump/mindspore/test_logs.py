# SPDX-License-Identifier: GPL-3.0-or-later
"""MindSpore's logs, graphs as text of old and new grammar, and directories of the Running Data Recorder, as an
independent writer lays them out."""
import json
import unittest

import harness
import numpy as np
from dumptool import gradb

OLD_IR = """#IR entry      : @construct.2
#attrs         :
#Total params  : 2

%para1_x : <Tensor[Float32]x[const vector][2, 3]>
%para2_fc.weight : <Ref[Tensor(F32)]>  :  <Float32xDefaultFormat[const vector][4, 3]>  :  IsWeight:true

#Total subgraph : 1

subgraph attr:
subgraph instance: construct.2 : 0x55
subgraph @construct.2() {
  %0([CNode]4) = MatMul(%para1_x, %para2_fc.weight) {instance name: matmul} primitive_attrs: {transpose_b: true, shape: (1, 2)}
      : (<Tensor[Float32]x[const vector][2, 3]>, <Ref>) -> (<Tensor[Float32]x[const vector][2, 4]>)
      : (Default/fc-Dense/MatMul-op1)
      # In file /lib/basic.py(310)/        x = self.matmul(x, self.weight)/
      # In file /net.py(12)/        return self.fc(x)/
  %1([CNode]5) = ReLU(%0)
      : (<Tensor[Float32]x[const vector][2, 4]>) -> (<Tensor[Float32]x[const vector][2, 4]>)
      # fullname_with_scope: (Default/ReLU-op2)
  Return(%1)
      : (<Tensor[Float32]x[const vector][2, 4]>)
}
"""
NEW_IR = """# IR entry: @5_net_7
# Total subgraphs: 2

# Total params: 2
# Params:
%para1_x: <Tensor[Float32], (2, 3)>
%para2_fc.weight: <Ref[Tensor[Float32]], (4, 3), ref_key=fc.weight, is_parameter>  :  has_default

Node counting information:
subgraph instance: 5_net_7 : 0x1
# In file /net.py:8~12, 4~42/    def construct(self, x):/
subgraph @5_net_7() {
  %0(a) = PrimFunc_MatMul(%para1_x, %para2_fc.weight, Bool(0), Bool(1)) {instance name: matmul} cnode_attrs: {x: Bool(1)}
      : (<Tensor[Float32], (2, 3)>, <Tensor[Float32], (4, 3)>) -> (<Tensor[Float32], (2, 4)>)
      # Fullname with scope: (Default/fc-Dense/MatMul-op0)
      # In file /net.py:11, 15~40/        return self.fc(x)/
      # In file /lib/basic.py:807, 12~39/        x = self.matmul(x, self.weight)/
#------------------------> 0
  %1(b) = call @6_inner_9(%0, %nothing)
      : (<Tensor[Float32], (2, 4)>) -> (<Tuple[Int64*2]>)
      # Fullname with scope: (Default/call-op1)
  Return(%1)
}
subgraph instance: 6_inner_9 : 0x2
subgraph @6_inner_9(%para3_y) {
  %0(c) = PrimFunc_ReLU(%para3_y)
      : (<Tensor[Float32], (2, 4)>) -> (<Tensor[Float32], (2, 4)>)
      # Fullname with scope: (Default/ReLU-op0)
  Return(%0)
}
"""


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = harness.folder_of(cls)

    def put(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_ir_of_both_grammars(self):
        old = self.put("old/hwopt_d_before_graph_0.ir", OLD_IR)
        new = self.put("new/24_execute_0609.ir", NEW_IR)
        self.put("new/02_parse_0004.ir", "# IR entry: @x\nsubgraph @x() {\n  %0(z) = Early()\n}\n")
        for path, stack in ((old, r"/net\.py:12"), (new.parent, r"/net\.py:11")):
            text = gradb(path, "info node MatMul-op1" if path == old else "info node MatMul-op0",
                         "backtrace all MatMul-op" + ("1" if path == old else "0"), "info node fc.weight")
            self.assertRegex(text, r"Default/fc-Dense/MatMul-op\d\n  type +MatMul.*order 0")
            self.assertRegex(text, r"output :0 +float32 \(2, 4\)")
            self.assertRegex(text, r"(?s)/lib/basic\.py:\d+.*" + stack)
            self.assertRegex(text, r"fc\.weight\n  type +Parameter, weight")
        text = gradb(old, "info node MatMul-op1", "info node ReLU-op2")
        self.assertRegex(text, r"transpose_b.*true")
        self.assertRegex(text, r"(?s)ReLU-op2\n.*input.*MatMul-op1")
        text = gradb(new.parent, "info target", "info events", "info node fc-Dense/MatMul-op0")
        self.assertRegex(text, r"graphs of stages +2")
        self.assertRegex(text, r"compilation failed at this node")
        for cut in range(0, len(NEW_IR), 173):  # whatever is left of it, gradb survives
            self.put("cut.ir", NEW_IR[:cut])
            self.assertNotRegex(gradb(self.dir / "cut.ir", "info target"), r"(?i)internal|signal") \
                if cut % (173 * 4) == 0 else None

    def test_recorder(self):
        rdr = "rdr/rank_2/rdr"
        self.put(f"{rdr}/PIPELINE.00_parse.20240501102030_0001.ir", "#IR entry : @p\nsubgraph @p() {\n  %0(z) = P()\n}\n")
        self.put(f"{rdr}/SESSION.graph_build.0.20240501102030_0042.ir", OLD_IR)
        self.put(f"{rdr}/SESSION.graph_exec_order.0.20240501102030.txt",
                 "================== execution order ==================\nexecution_order size: 2\n"
                 "0:\n\tDefault/ReLU-op2{[0]: x}\n\t0\n\t0\n1:\n\tDefault/fc-Dense/MatMul-op1{}\n\t0\n\t0\n====\n")
        self.put(f"{rdr}/OPTIMIZER.somas_mem_info.0.20240501102030.txt", "text\n")
        name = "Default/fc-Dense/MatMul-op1"
        self.put(f"{rdr}/SESSION.assign_stream.0.20240501102030.json",  # appended to: several arrays
                 json.dumps([{"index": 0, "node_name": name, "logic_id": 3, "stream_id": 7, "node_info": "x",
                              "event_id": 2, "active_stream_id": "1,4"}], indent=2) + "\n"
                 + json.dumps([{"index": 0, "node_name": "Default/ReLU-op2", "logic_id": 9, "stream_id": 8},
                               {"node_name": 5}, 7]) + "\n[{]")
        self.put(f"{rdr}/DEVICE.task_info_graph.0.20240501102030.ir",
                 f"op_name:{name}\ntask_index:0\ttask_num:1\ttask0_stream_id:7\ttask0_type:KERNEL\n"
                 "input address:0x12(64)\t0x99(32)\n")
        self.put(f"{rdr}/KERNEL.mem_address_list.20240501102030.txt",
                 f"{name}\nkernel_inputs 2\n&0x12 #64\n&0x99 #32\nkernel_workspaces 0\nkernel_outputs 1\n&0x55 #8\n\n")
        text = gradb(self.dir / "rdr", "info target", "info node MatMul-op1", "info node ReLU-op2", "info formats")
        for wanted in (r"transpose_b = true", r"logic_id = 3", r"stream_id = 7", r"event_id = 2",
                       r"active_stream_id = 1,4", r"logic_id = 9", r"streams +2 nodes",
                       r"task = task_index:0 task_num:1 task0_stream_id:7 task0_type:KERNEL",
                       r"input address = 0x12\(64\) 0x99\(32\)", r"kernel_inputs = &0x12 #64, &0x99 #32",
                       r"kernel_outputs = &0x55 #8", r"somas_mem_info.*memory planner",
                       r"assign_stream.*(line|byte|key)"):
            self.assertRegex(text, wanted)
        self.assertRegex(text, r"graph +SESSION\.graph_build\.0\.20240501102030_0042\.ir")
        self.assertRegex(text, r"order of execution +2 nodes")
        self.assertRegex(text, r"MatMul-op1\n  type +MatMul.*order 1")
        self.assertRegex(text, r"rdr +7 ")

    def test_logs_alone_and_beside_a_dump(self):
        lines = ("Log file created at: 2024/05/01\n"
                 "[INFO] ME(7:139,MainProcess):2024-05-01-10:20:30.123.45 [mindspore/train.py:12] epoch: 1 step: 3\n"
                 "[WARNING] KERNEL(7,7f00,python):2024-05-01-10:20:31.000.001 [a/b.cc:12] Run] Slow kernel\n"
                 "[ERROR] DEVICE(7,7f00,python):2024-05-01-10:20:32.000.001 [a/c.cc:99] Launch] Overflow of "
                 "Default/fc/MatMul-op1.\n----\n- Framework:\nmore of it\n"
                 "[CRITICAL] ANALYZER(7,7f00,python):2024-05-01-10:20:33.000.001 [d.cc:1] X] cur_step_num=9 gone\n"
                 "[INFO] CORE(7,python):2024-05-01-10:20:34.1.2 [e.cc:1] f] fine")
        logs = self.put("log/rank_1/logs/mindspore.host.me.log.INFO.20240501-102030.7", lines).parent
        (logs / "mindspore.host.me.log.ERROR.20240501-102030.7").write_text(lines)
        text = gradb(self.dir / "log", "info events", "info target", "info formats")
        self.assertRegex(text, r"(?s)3 +WARNING.*Slow kernel.*ERROR.*Overflow.*more of it.*9 +CRITICAL.*gone"
                               r"|(?s:.*WARNING.*Slow kernel.*)")
        self.assertRegex(text, r"2 INFO, 1 WARNING, 1 ERROR, 1 CRITICAL")
        self.assertRegex(text, r"log\.ERROR.*the log of a lower level contains the same lines")
        step = self.dir / "both" / "rank_0" / "Net" / "0" / "3"
        step.mkdir(parents=True)
        np.save(step / "MatMul.Default_fc_MatMul-op1.0.0.1714558832000000.output.0.DefaultFormat.npy", np.ones(2, "f4"))
        self.put("both/rank_0/logs/mindspore.log.7", lines)
        text = gradb(self.dir / "both", "info events", "info target")
        self.assertRegex(text, r"(?s)1 nodes?, step 3.*Slow kernel")
        single = self.put("one.log", "[ERROR] ME(1,x):2024-05-01-10:20:31.000.001 [a.py:1] alone\n[")
        self.assertRegex(gradb(single, "info events"), r"alone")


if __name__ == "__main__":
    harness.main()
